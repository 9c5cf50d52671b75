# Install rules: library, header, command, licence, CMake package (with its version file) and pkg-config file.
# All paths inside them are relative to where they are found, so that an installed tree may be moved.
include(CMakePackageConfigHelpers)

set(wsgemm_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/wsgemm)

install(TARGETS wsgemm EXPORT wsgemm_targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES include/wsgemm.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

# The BLAS library: as a library of its own, beside libwsgemm; and for Debian's alternatives (tools/blas_alternative.sh) as
# wsgemm/libblas.so.3, under a name that threadpoolctl takes for an OpenBLAS, whose thread controls it has.
if(TARGET wsgemm_blas)
  file(RELATIVE_PATH wsgemm_alternative_to_lib ${CMAKE_INSTALL_FULL_LIBDIR}/wsgemm ${CMAKE_INSTALL_FULL_LIBDIR})
  # By way of an alternative the loader knows no place of the file but the link's, so the place stands there, too.
  set_target_properties(wsgemm_blas PROPERTIES INSTALL_RPATH $ORIGIN:$ORIGIN/${wsgemm_alternative_to_lib}:${CMAKE_INSTALL_FULL_LIBDIR})
  install(TARGETS wsgemm_blas EXPORT wsgemm_targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(CODE "
    set(folder \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}\")
    file(MAKE_DIRECTORY \"\${folder}/wsgemm\")
    file(COPY_FILE \"\${folder}/libwsgemm_blas.so.${PROJECT_VERSION}\" \"\${folder}/wsgemm/libopenblas_wsgemm.so.0\")
    file(CREATE_LINK libopenblas_wsgemm.so.0 \"\${folder}/wsgemm/libblas.so.3\" SYMBOLIC)
    list(APPEND CMAKE_INSTALL_MANIFEST_FILES \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/wsgemm/libopenblas_wsgemm.so.0\"
      \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/wsgemm/libblas.so.3\")")
  install(FILES tools/blas_alternative.sh DESTINATION ${CMAKE_INSTALL_DATADIR}/wsgemm)
endif()

# The cuBLAS interposer: to be preloaded, so no program links it and no package names it.
if(TARGET wsgemm_cublas)
  set_target_properties(wsgemm_cublas PROPERTIES INSTALL_RPATH $ORIGIN)
  install(TARGETS wsgemm_cublas LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_SKIP)
endif()

if(WSGEMM_BUILD_CLI)
  file(RELATIVE_PATH wsgemm_bin_to_lib ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  set_target_properties(wsgemm_cli PROPERTIES INSTALL_RPATH $ORIGIN/${wsgemm_bin_to_lib})
  install(TARGETS wsgemm_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  # What the command itself says makes its man page and completions: where it can be run.
  if(NOT CMAKE_CROSSCOMPILING)
    set(command_docs ${CMAKE_CURRENT_BINARY_DIR}/command_docs)
    add_custom_command(
      OUTPUT ${command_docs}/wsgemm.1 ${command_docs}/wsgemm.bash ${command_docs}/_wsgemm
      COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/tools/package/command_docs.sh $<TARGET_FILE:wsgemm_cli> ${command_docs}
      DEPENDS wsgemm_cli ${CMAKE_CURRENT_SOURCE_DIR}/tools/package/command_docs.sh
      COMMENT "man page and completions of the command"
      VERBATIM)
    add_custom_target(wsgemm_command_docs ALL DEPENDS ${command_docs}/wsgemm.1)
    install(FILES ${command_docs}/wsgemm.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
    install(FILES ${command_docs}/wsgemm.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME wsgemm)
    install(FILES ${command_docs}/_wsgemm DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  endif()
endif()

install(EXPORT wsgemm_targets NAMESPACE wsgemm:: DESTINATION ${wsgemm_package_dir})
configure_package_config_file(tools/package/wsgemmConfig.cmake.in wsgemmConfig.cmake INSTALL_DESTINATION ${wsgemm_package_dir})
# Before 1.0 a new minor version may break callers.
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/wsgemmConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/wsgemmConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/wsgemmConfigVersion.cmake
  DESTINATION ${wsgemm_package_dir})

file(RELATIVE_PATH wsgemm_pc_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
# What a static library needs besides: what target_link_libraries says in CMakeLists.txt.
set(wsgemm_pc_private "-pthread")
foreach(library IN LISTS CMAKE_DL_LIBS ITEMS m)
  string(APPEND wsgemm_pc_private " -l${library}")
endforeach()
configure_file(tools/package/wsgemm.pc.in wsgemm.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/wsgemm.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(TARGET wsgemm_blas)
  configure_file(tools/package/wsgemm_blas.pc.in wsgemm_blas.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/wsgemm_blas.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()

# A Debian package of all of it, by `cpack -G DEB` in a build folder that was configured with -DCMAKE_INSTALL_PREFIX=/usr.
if(PROJECT_IS_TOP_LEVEL AND NOT DEFINED SKBUILD)
  set(CPACK_GENERATOR DEB)
  set(CPACK_PACKAGE_CONTACT "the wsgemm authors <none@invalid>")
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
  set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
  set(CPACK_STRIP_FILES ON)
  set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_CURRENT_SOURCE_DIR}/LICENSE)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_PACKAGE_SECTION libs)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
  include(CPack)
endif()
