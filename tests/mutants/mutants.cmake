# Kernels through the public ABI that share no code with the references: sound ones in every legal arithmetic, and
# wrong ones. tests/mutants/<op>.c for each op; the library is tests/mutants/mutants.so in the build folder.
set(GCK_MUTANTS ${CMAKE_BINARY_DIR}/tests/mutants)
set(sources "")
set(list "/* Generated: every op that has tests/mutants/<op>.c. */\n")
foreach(op IN LISTS GCK_OPS)
  if(EXISTS ${CMAKE_CURRENT_LIST_DIR}/${op}.c)
    list(APPEND sources ${CMAKE_CURRENT_LIST_DIR}/${op}.c)
    string(APPEND list "GCK_OP(${op})\n")
  endif()
endforeach()
file(CONFIGURE OUTPUT ${GCK_MUTANTS}/mutant_ops.inc CONTENT "${list}" @ONLY)
add_library(mutants MODULE ${sources} ${CMAKE_CURRENT_LIST_DIR}/table.c)
target_link_libraries(mutants PRIVATE gck_flags m)
target_include_directories(mutants PRIVATE ${GCK_MUTANTS})
set_target_properties(mutants PROPERTIES PREFIX "" SUFFIX ".so" LIBRARY_OUTPUT_DIRECTORY ${GCK_MUTANTS})

# Every wrong kernel is caught, and named what it is.
add_executable(judge_mutants ${CMAKE_CURRENT_LIST_DIR}/judge_mutants.c)
target_link_libraries(judge_mutants PRIVATE gck_flags gck_checks)
add_dependencies(judge_mutants mutants)
add_test(NAME mutants.caught_and_named COMMAND judge_mutants $<TARGET_FILE:mutants> ${CMAKE_CURRENT_LIST_DIR}/cases.txt)
set_tests_properties(mutants.caught_and_named PROPERTIES LABELS "mutants" TIMEOUT 300)

# The page that shows it: written by a target, and compared by a test.
set(page ${CMAKE_SOURCE_DIR}/docs/mutants.md)
set(judge judge_mutants $<TARGET_FILE:mutants> ${CMAKE_CURRENT_LIST_DIR}/cases.txt --markdown)
add_custom_target(mutants-page COMMAND ${judge} > ${page} VERBATIM)
add_test(NAME mutants.page_is_current COMMAND sh -c "\"$0\" \"$1\" \"$2\" --markdown | cmp - \"$3\"" $<TARGET_FILE:judge_mutants>
         $<TARGET_FILE:mutants> ${CMAKE_CURRENT_LIST_DIR}/cases.txt ${page})
set_tests_properties(mutants.page_is_current PROPERTIES LABELS "mutants" TIMEOUT 300)

# No sound kernel is accused: random cases for less than a minute here; docs/false-alarms.md records long runs. The
# built-in library has to lie beside the program that loads it.
add_executable(false_alarms ${CMAKE_CURRENT_LIST_DIR}/false_alarms.c)
target_link_libraries(false_alarms PRIVATE gck_flags gck_checks)
set_target_properties(false_alarms PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
add_dependencies(false_alarms mutants gradcheck-host)
add_test(NAME mutants.false_alarms COMMAND false_alarms $<TARGET_FILE:mutants> 2000 30 1)
set_tests_properties(mutants.false_alarms PROPERTIES LABELS "mutants;false-alarms" TIMEOUT 300)

# The wrong backwards that checkers are measured by: here up to 64×256, all three sizes by hand (docs/mutants.md).
add_executable(wrong_backwards ${CMAKE_CURRENT_LIST_DIR}/wrong_backwards.c)
target_link_libraries(wrong_backwards PRIVATE gck_flags gck_checks)
add_dependencies(wrong_backwards mutants)
add_test(NAME mutants.wrong_backwards COMMAND wrong_backwards $<TARGET_FILE:mutants> 64)
set_tests_properties(mutants.wrong_backwards PROPERTIES LABELS "mutants" TIMEOUT 300)
