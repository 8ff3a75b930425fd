
####### Expanded from @PACKAGE_INIT@ by configure_package_config_file() #######
####### Any changes to this file will be overwritten by the next CMake run ####
####### The input file was moontide-config.cmake.in                            ########

get_filename_component(PACKAGE_PREFIX_DIR "${CMAKE_CURRENT_LIST_DIR}/../../../" ABSOLUTE)

macro(set_and_check _var _file)
  set(${_var} "${_file}")
  if(NOT EXISTS "${_file}")
    message(FATAL_ERROR "File or directory ${_file} referenced by variable ${_var} does not exist !")
  endif()
endmacro()

macro(check_required_components _NAME)
  foreach(comp ${${_NAME}_FIND_COMPONENTS})
    if(NOT ${_NAME}_${comp}_FOUND)
      if(${_NAME}_FIND_REQUIRED_${comp})
        set(${_NAME}_FOUND FALSE)
      endif()
    endif()
  endforeach()
endmacro()

####################################################################################
# find_package(moontide) gives moontide::moontide (shared) and moontide::static.
# Both link Lua and libuv as libraries: C modules of Lua do, too, and a second
# copy of Lua in one process would not know the first one's values.
include(CMakeFindDependencyMacro)
find_dependency(PkgConfig)
find_dependency(Threads)
pkg_check_modules(LUA QUIET IMPORTED_TARGET lua5.4)
pkg_check_modules(UV QUIET IMPORTED_TARGET libuv)
if(NOT LUA_FOUND OR NOT UV_FOUND)
  set(moontide_FOUND FALSE)
  set(moontide_NOT_FOUND_MESSAGE
    "moontide needs lua5.4 and libuv (liblua5.4-dev, libuv1-dev)")
  return()
endif()
include("${CMAKE_CURRENT_LIST_DIR}/moontide.cmake")
check_required_components(moontide)
