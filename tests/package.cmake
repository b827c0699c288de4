# The installed package, moved somewhere else, builds and judges the kernels of docs/examples in a project of its own.
#   cmake -D SOURCE=… -D BUILD=… -D FOLDER=… -P tests/package.cmake
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "failed: ${ARGN}")
  endif()
endfunction()

file(REMOVE_RECURSE ${FOLDER})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${FOLDER}/first)
file(RENAME ${FOLDER}/first ${FOLDER}/moved) # nothing may know the place that it was installed to
file(COPY ${SOURCE}/docs/examples DESTINATION ${FOLDER})
run(${CMAKE_COMMAND} -G Ninja -S ${FOLDER}/examples -B ${FOLDER}/build -D CMAKE_PREFIX_PATH=${FOLDER}/moved
    -D CMAKE_BUILD_TYPE=Release)
run(${CMAKE_COMMAND} --build ${FOLDER}/build)
run(${CMAKE_CTEST_COMMAND} --test-dir ${FOLDER}/build --output-on-failure --no-tests=error)
run(${FOLDER}/moved/bin/gradcheck layernorm rows=3 cols=8)
file(REMOVE_RECURSE ${FOLDER})
