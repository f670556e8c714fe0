# Installs files that another build made, as the Python package wants them: VERBATIM_BUILT lists the
# compiled part and the program.
foreach(file IN LISTS VERBATIM_BUILT)
  if(file MATCHES "[.]so$")
    install(PROGRAMS "${file}" DESTINATION verbatim COMPONENT python)
  else()
    install(PROGRAMS "${file}" DESTINATION "${SKBUILD_SCRIPTS_DIR}" COMPONENT python)
  endif()
endforeach()
# What the package's build asks for.
add_custom_target(verbatim-python)
add_custom_target(verbatim)
