# gradcheck_add_kernel(SOURCE… OP op [NAME name] [DTYPES list] [CASES "rows=7 cols=1000" …] [OPTIONS …] [LINK libs…])
#
# Builds one kernel library for each device that the sources can run on, and one ctest entry for each of its cases:
#   .c, .cpp   cpu: host pointers, an ordinary thread
#   .cu        host: the CPU, through the SIMT executor; and cuda where the project has enabled the language CUDA
# Targets are <name>-<device>; tests gradcheck.<op>.<name>.<device>[.k]. A cuda test is skipped where no device is.
#   NAME     default: the first source's name without its ending
#   DTYPES   as --dtype takes them: "f32,bf16" or "all" (default)
#   CASES    default: one, with the op's default sizes
#   OPTIONS  further words for gradcheck, such as intermediates=storage
include_guard(GLOBAL)

function(gradcheck_add_kernel)
  cmake_parse_arguments(arg "" "OP;NAME;DTYPES" "CASES;OPTIONS;LINK" ${ARGN})
  if(NOT arg_OP OR NOT arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "gradcheck_add_kernel(SOURCE… OP op …) needs a source and an op")
  endif()
  list(GET arg_UNPARSED_ARGUMENTS 0 first)
  if(NOT arg_NAME)
    get_filename_component(arg_NAME ${first} NAME_WE)
  endif()
  if(NOT arg_DTYPES)
    set(arg_DTYPES all)
  endif()

  get_filename_component(ending ${first} LAST_EXT)
  set(devices cpu)
  if(ending STREQUAL ".cu")
    set(devices host)
    get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
    if("CUDA" IN_LIST languages)
      list(APPEND devices cuda)
    endif()
  endif()

  foreach(device IN LISTS devices)
    gradcheck_kernel_library_(${arg_NAME}-${device} ${device} "${arg_UNPARSED_ARGUMENTS}" "${arg_LINK}")
    gradcheck_kernel_tests_(${arg_NAME} ${device} ${arg_OP} ${arg_DTYPES} "${arg_CASES}" "${arg_OPTIONS}")
  endforeach()
endfunction()

# One module. For the host device a .cu is compiled through a one-line .cpp, so that no source property is needed.
function(gradcheck_kernel_library_ target device sources link)
  set(files "")
  foreach(source IN LISTS sources)
    get_filename_component(path ${source} ABSOLUTE)
    if(device STREQUAL "host" AND path MATCHES "\\.cu$")
      get_filename_component(stem ${source} NAME_WE)
      set(wrapper ${CMAKE_CURRENT_BINARY_DIR}/${target}-${stem}.cpp)
      file(CONFIGURE OUTPUT ${wrapper} CONTENT "#include \"${path}\"\n" @ONLY)
      set_source_files_properties(${wrapper} PROPERTIES OBJECT_DEPENDS ${path})
      list(APPEND files ${wrapper})
    else()
      list(APPEND files ${path})
    endif()
  endforeach()
  add_library(${target} MODULE ${files})
  set_target_properties(${target} PROPERTIES PREFIX "" SUFFIX ".so" CXX_STANDARD 17 CUDA_STANDARD 17)
  target_link_libraries(${target} PRIVATE gradcheck::kernel ${link})
  if(device STREQUAL "host")
    target_link_libraries(${target} PRIVATE gradcheck::simt)
    # A kernel is loops over small arrays between fibre switches; without optimization it takes many times as long.
    target_compile_options(${target} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-O2> -ffp-contract=off)
  elseif(device STREQUAL "cpu")
    target_link_libraries(${target} PRIVATE m)
  endif()
endfunction()

function(gradcheck_kernel_tests_ name device op dtypes cases options)
  if(NOT cases)
    set(cases " ")
  endif()
  set(number 0)
  list(LENGTH cases count)
  foreach(case IN LISTS cases)
    math(EXPR number "${number} + 1")
    set(test gradcheck.${op}.${name}.${device})
    if(count GREATER 1)
      string(APPEND test .${number})
    endif()
    separate_arguments(words UNIX_COMMAND "${case}")
    add_test(NAME ${test} COMMAND gradcheck::gradcheck ${op} ${words} --kernel $<TARGET_FILE:${name}-${device}>
             --device ${device} --dtype ${dtypes} ${options})
    if(device STREQUAL "cuda")
      set_tests_properties(${test} PROPERTIES SKIP_RETURN_CODE 3) # the environment cannot: no device
    endif()
  endforeach()
endfunction()
