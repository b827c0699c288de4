# Files that a program carries inside itself, as C arrays.
#
# gck_embed(target PREFIX p FILES name=path …): generates <build>/embedded/<p>.c and .h with, for each file,
#   extern const unsigned char <p>_<name>[]; extern const size_t <p>_<name>_size; extern const char <p>_<name>_sha256[];
# and adds them to the target. The last is the SHA-256 in base64, as a content security policy names a script.
function(gck_embed target)
  cmake_parse_arguments(arg "" "PREFIX" "FILES" ${ARGN})
  set(source ${CMAKE_BINARY_DIR}/embedded/${arg_PREFIX}.c)
  set(header ${CMAKE_BINARY_DIR}/embedded/${arg_PREFIX}.h)
  set(inputs "")
  foreach(entry IN LISTS arg_FILES)
    string(REGEX REPLACE "^[^=]*=" "" path ${entry})
    list(APPEND inputs ${path})
  endforeach()
  string(REPLACE ";" "|" files "${arg_FILES}")
  add_custom_command(OUTPUT ${source} ${header}
    COMMAND ${CMAKE_COMMAND} -D "FILES=${files}" -D PREFIX=${arg_PREFIX} -D SOURCE=${source} -D HEADER=${header}
            -P ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/embed-files.cmake
    DEPENDS ${inputs} ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/embed-files.cmake
    COMMENT "Embedding ${arg_PREFIX}" VERBATIM)
  target_sources(${target} PRIVATE ${source} ${header})
  target_include_directories(${target} PRIVATE ${CMAKE_BINARY_DIR}/embedded)
endfunction()

# Chart.js for the HTML report (Debian: libjs-chart.js), inlined into the page.
find_file(GCK_CHART_JS chart.min.js PATHS /usr/share/javascript/chart.js /usr/share/nodejs/chart.js/dist NO_DEFAULT_PATH)
if(NOT GCK_CHART_JS)
  message(FATAL_ERROR "chart.min.js was not found: install libjs-chart.js, or set GCK_CHART_JS to Chart.js 3's chart.min.js")
endif()
