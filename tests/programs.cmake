# Tests that run the program itself, as its users do: from the command line, from an installed package, by the README.

# The kernels of docs/examples as their reader would build them.
set(GCK_EXAMPLES ${CMAKE_BINARY_DIR}/tests/examples)
set(example_source ${CMAKE_SOURCE_DIR}/docs/examples/my_softmax)
file(CONFIGURE OUTPUT ${GCK_EXAMPLES}/my_softmax_host.cpp CONTENT "#include \"${example_source}.cu\"\n" @ONLY)
add_library(example_softmax MODULE ${example_source}.c)
add_library(example_softmax_fault MODULE ${example_source}.c)
target_compile_definitions(example_softmax_fault PRIVATE PLANTED_FAULT)
add_library(example_softmax_host MODULE ${GCK_EXAMPLES}/my_softmax_host.cpp)
target_link_libraries(example_softmax_host PRIVATE gck_simt)
foreach(example softmax softmax_fault softmax_host)
  target_link_libraries(example_${example} PRIVATE gck_flags m)
  set_target_properties(example_${example} PROPERTIES PREFIX "" SUFFIX ".so" OUTPUT_NAME my_${example}
    LIBRARY_OUTPUT_DIRECTORY ${GCK_EXAMPLES})
endforeach()

# gck_program_test(name): tests/cli/<name>.c, a cmocka program that runs gradcheck.
function(gck_program_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "" ${ARGN})
  add_executable(cli_${name} cli/${name}.c)
  target_link_libraries(cli_${name} PRIVATE gck_flags gck_core outside_cmocka)
  target_compile_definitions(cli_${name} PRIVATE GCK_PROGRAM="$<TARGET_FILE:gradcheck>" GCK_EXAMPLES="${GCK_EXAMPLES}"
    GCK_CHECK_KERNELS="${GCK_CHECK_KERNELS}")
  add_dependencies(cli_${name} gradcheck example_softmax example_softmax_fault example_softmax_host unknown_kernels)
  add_test(NAME cli.${name} COMMAND cli_${name})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300) # under the sanitizers everything takes several times as long
  endif()
  set_tests_properties(cli.${name} PROPERTIES LABELS program TIMEOUT ${arg_TIMEOUT} SKIP_RETURN_CODE 77)
endfunction()
file(GLOB programs CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}/cli cli/test_*.c)
foreach(program IN LISTS programs)
  string(REGEX REPLACE "\\.c$" "" name ${program})
  gck_program_test(${name})
endforeach()

# The built-in kernels as ctest entries: every op, every dtype; on cuda skipped where there is no device (exit 3).
foreach(op IN LISTS GCK_OPS)
  add_test(NAME gradcheck.${op}.host COMMAND gradcheck ${op} --dtype all)
  set_tests_properties(gradcheck.${op}.host PROPERTIES LABELS program TIMEOUT 300)
  add_test(NAME gradcheck.${op}.cuda COMMAND gradcheck ${op} --dtype all --device cuda)
  set_tests_properties(gradcheck.${op}.cuda PROPERTIES LABELS "program;gpu" TIMEOUT 300 SKIP_RETURN_CODE 3)
endforeach()

# A few captured gradients that stand here, so that the project is whole without the folder of captures.
add_test(NAME captures.small COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/captures.sh $<TARGET_FILE:gradcheck>)
set_tests_properties(captures.small PROPERTIES LABELS program TIMEOUT 120)

# Every op by its smallest suite.
foreach(op IN LISTS GCK_OPS)
  add_test(NAME smoke.${op} COMMAND gradcheck ${op} --suite smoke -q)
  set_tests_properties(smoke.${op} PROPERTIES LABELS smoke TIMEOUT 120)
endforeach()

# Rules that no compiler holds.
add_test(NAME ci.lint COMMAND ${CMAKE_SOURCE_DIR}/ci/lint)
set_tests_properties(ci.lint PROPERTIES LABELS lint TIMEOUT 120)

# What the documents show works as shown.
add_test(NAME documents.commands COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/documents.sh ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}
         README.md docs/bring-your-own-kernel.md)
set_tests_properties(documents.commands PROPERTIES LABELS program TIMEOUT 300 RUN_SERIAL ON)

# A sanitized executor would need a sanitized project.
if(NOT GCK_SANITIZE)
  add_test(NAME package.installed COMMAND ${CMAKE_COMMAND} -D SOURCE=${CMAKE_SOURCE_DIR} -D BUILD=${CMAKE_BINARY_DIR}
           -D FOLDER=${CMAKE_BINARY_DIR}/tests/package -P ${CMAKE_CURRENT_SOURCE_DIR}/package.cmake)
  set_tests_properties(package.installed PROPERTIES LABELS program TIMEOUT 300)
endif()
