# Tests of the SIMT executor (C++, since they hold kernels), and of the built-in kernels through their ABI.
foreach(name test_simt test_simt_faults test_simt_orders test_simt_float16)
  add_executable(${name} ${CMAKE_CURRENT_LIST_DIR}/${name}.cpp)
  target_link_libraries(${name} PRIVATE gck_flags gck_simt gck_core outside_cmocka)
  add_test(NAME gpu.${name} COMMAND ${name})
  set_tests_properties(gpu.${name} PROPERTIES LABELS unit TIMEOUT 120)
endforeach()

foreach(name test_kernels_layernorm test_kernels_softmax test_kernels_ste_round test_kernels_cross_entropy
             test_kernels_attention)
  add_executable(${name} ${CMAKE_CURRENT_LIST_DIR}/${name}.cpp)
  target_link_libraries(${name} PRIVATE gck_flags gck_core outside_cmocka ${CMAKE_DL_LIBS})
  target_compile_definitions(${name} PRIVATE GCK_HOST_KERNELS="$<TARGET_FILE:gradcheck-host>")
  add_dependencies(${name} gradcheck-host)
  add_test(NAME gpu.${name} COMMAND ${name})
  set_tests_properties(gpu.${name} PROPERTIES LABELS unit TIMEOUT 120)
endforeach()

# The race detector's rules, in kernels that are compiled to be watched.
if(GCK_HAVE_RACE)
  add_executable(test_race_orders ${CMAKE_CURRENT_LIST_DIR}/test_race_orders.cpp)
  target_link_libraries(test_race_orders PRIVATE gck_flags gck_race gck_core outside_cmocka)
  target_compile_options(test_race_orders PRIVATE ${GCK_RACE_OPTIONS})
  add_test(NAME gpu.test_race_orders COMMAND test_race_orders)
  set_tests_properties(gpu.test_race_orders PROPERTIES LABELS unit TIMEOUT 120)
endif()
