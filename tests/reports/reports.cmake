# Tests that look at written reports from outside: formats against their schemas, the page in a browser. Each is skipped
# (77) where its tool is missing.
add_executable(sample_files ${CMAKE_CURRENT_LIST_DIR}/sample_files.c)
target_link_libraries(sample_files PRIVATE gck_flags gck_reports)
find_package(Python3 COMPONENTS Interpreter)
if(Python3_Interpreter_FOUND)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/sample-reports)
  file(MAKE_DIRECTORY ${folder})
  add_test(NAME reports.sample_files COMMAND sample_files ${folder})
  add_test(NAME reports.formats COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/formats.py ${folder}
    ${CMAKE_SOURCE_DIR}/docs/report-schema.json ${CMAKE_CURRENT_LIST_DIR}/junit.xsd)
  add_test(NAME reports.page COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/page.py ${folder})
  set_tests_properties(reports.sample_files PROPERTIES FIXTURES_SETUP sample_reports LABELS unit TIMEOUT 120)
  set_tests_properties(reports.formats reports.page PROPERTIES FIXTURES_REQUIRED sample_reports LABELS unit TIMEOUT 300
    SKIP_RETURN_CODE 77)
  if(TARGET gradcheck) # five faulty gradients and a sound one, judged, reported and drawn
    add_test(NAME reports.gallery COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/gallery.py $<TARGET_FILE:gradcheck>
      ${GCK_SHARED_DIR}/captures ${CMAKE_CURRENT_BINARY_DIR}/gallery)
    set_tests_properties(reports.gallery PROPERTIES LABELS unit TIMEOUT 300 SKIP_RETURN_CODE 77)
  endif()
endif()
