# What `cmake --install` leaves behind: bin/gradcheck, lib/gradcheck with the built-in kernels and the SIMT executor,
# the kernel ABI's header, the headers that a .cu needs to run on the CPU, and the CMake package.
include(CMakePackageConfigHelpers)
set(CMAKE_INSTALL_BINDIR bin)
set(CMAKE_INSTALL_INCLUDEDIR include)
set(GCK_INSTALL_LIBDIR lib/gradcheck)
set(GCK_INSTALL_CMAKEDIR lib/cmake/gradcheck)

install(FILES include/gradcheck/kernel.h include/gradcheck/device.cuh DESTINATION include/gradcheck)
install(FILES gpu/kernels/device.cuh DESTINATION include/gradcheck/device/gpu/kernels)
install(DIRECTORY gpu/simt DESTINATION include/gradcheck/device/gpu FILES_MATCHING PATTERN "*.h")
install(TARGETS gck_simt ARCHIVE DESTINATION ${GCK_INSTALL_LIBDIR})
if(GCK_HAVE_RACE)
  install(TARGETS gck_race ARCHIVE DESTINATION ${GCK_INSTALL_LIBDIR})
endif()

configure_package_config_file(cmake/gradcheckConfig.cmake.in ${CMAKE_BINARY_DIR}/gradcheckConfig.cmake
  INSTALL_DESTINATION ${GCK_INSTALL_CMAKEDIR}
  PATH_VARS CMAKE_INSTALL_BINDIR CMAKE_INSTALL_INCLUDEDIR GCK_INSTALL_LIBDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/gradcheckConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/gradcheckConfig.cmake ${CMAKE_BINARY_DIR}/gradcheckConfigVersion.cmake
  cmake/GradcheckAddKernel.cmake cmake/GradcheckRace.cmake DESTINATION ${GCK_INSTALL_CMAKEDIR})
