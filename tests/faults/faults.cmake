# Faults that real kernels had, planted in plug-ins (tests/faults/<op>.c), each caught by the ci suite of its op: no case
# is written for any of them.
set(GCK_FAULTS ${CMAKE_BINARY_DIR}/tests/faults)
set(sources "")
set(list "/* Generated: every op that has tests/faults/<op>.c. */\n")
foreach(op IN LISTS GCK_OPS)
  if(EXISTS ${CMAKE_CURRENT_LIST_DIR}/${op}.c)
    list(APPEND sources ${CMAKE_CURRENT_LIST_DIR}/${op}.c)
    string(APPEND list "GCK_OP(${op})\n")
  endif()
endforeach()
file(CONFIGURE OUTPUT ${GCK_FAULTS}/fault_ops.inc CONTENT "${list}" @ONLY)
add_library(faults MODULE ${sources} ${CMAKE_CURRENT_LIST_DIR}/table.c)
# Without gck_flags: a write past the end is to be found by the guard zones, not stopped by a sanitizer.
target_compile_options(faults PRIVATE -Wall -Wextra -Wshadow -Werror -ffp-contract=off -fvisibility=hidden -O2)
target_link_libraries(faults PRIVATE m)
target_include_directories(faults PRIVATE ${GCK_FAULTS} ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/tests/mutants)
set_target_properties(faults PROPERTIES PREFIX "" SUFFIX ".so" LIBRARY_OUTPUT_DIRECTORY ${GCK_FAULTS})

add_executable(judge_faults ${CMAKE_CURRENT_LIST_DIR}/judge_faults.c ${CMAKE_CURRENT_LIST_DIR}/rows.c)
target_link_libraries(judge_faults PRIVATE gck_flags gck_checks)
add_dependencies(judge_faults faults)
foreach(op IN LISTS GCK_OPS)
  if(EXISTS ${CMAKE_CURRENT_LIST_DIR}/${op}.c)
    add_test(NAME faults.${op} COMMAND judge_faults caught $<TARGET_FILE:faults> ${op})
    add_test(NAME faults.${op}.sound COMMAND judge_faults sound $<TARGET_FILE:faults> ${op} smoke)
    set_tests_properties(faults.${op} faults.${op}.sound PROPERTIES LABELS faults TIMEOUT 300)
  endif()
endforeach()

# docs/faults.md, and the families that alone find a fault (minutes), are written by targets.
add_custom_target(faults-page COMMAND judge_faults page $<TARGET_FILE:faults> > ${CMAKE_SOURCE_DIR}/docs/faults.md VERBATIM)
add_custom_target(faults-families
  COMMAND judge_faults families $<TARGET_FILE:faults> > ${CMAKE_SOURCE_DIR}/docs/faults-families.md VERBATIM)
add_test(NAME faults.page_is_current
  COMMAND sh -c "\"$0\" page \"$1\" | cmp - \"$2\"" $<TARGET_FILE:judge_faults> $<TARGET_FILE:faults> ${CMAKE_SOURCE_DIR}/docs/faults.md)
set_tests_properties(faults.page_is_current PROPERTIES LABELS faults TIMEOUT 300)
