#----------------------------------------------------------------
# Generated CMake target import file for configuration "Debug".
#----------------------------------------------------------------

# Commands may need to know the format version.
set(CMAKE_IMPORT_FILE_VERSION 1)

# Import target "moontide::moontide" for configuration "Debug"
set_property(TARGET moontide::moontide APPEND PROPERTY IMPORTED_CONFIGURATIONS DEBUG)
set_target_properties(moontide::moontide PROPERTIES
  IMPORTED_LOCATION_DEBUG "${_IMPORT_PREFIX}/lib/libmoontide.so.0.1.0"
  IMPORTED_SONAME_DEBUG "libmoontide.so.0"
  )

list(APPEND _cmake_import_check_targets moontide::moontide )
list(APPEND _cmake_import_check_files_for_moontide::moontide "${_IMPORT_PREFIX}/lib/libmoontide.so.0.1.0" )

# Import target "moontide::static" for configuration "Debug"
set_property(TARGET moontide::static APPEND PROPERTY IMPORTED_CONFIGURATIONS DEBUG)
set_target_properties(moontide::static PROPERTIES
  IMPORTED_LINK_INTERFACE_LANGUAGES_DEBUG "C"
  IMPORTED_LOCATION_DEBUG "${_IMPORT_PREFIX}/lib/libmoontide.a"
  )

list(APPEND _cmake_import_check_targets moontide::static )
list(APPEND _cmake_import_check_files_for_moontide::static "${_IMPORT_PREFIX}/lib/libmoontide.a" )

# Commands beyond this point should not need to know the version.
set(CMAKE_IMPORT_FILE_VERSION)
