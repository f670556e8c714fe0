# verbatim_embed(TARGET FUNCTION FILE): adds `std::string_view verbatim::FUNCTION()` to a target; it
# returns the file's bytes as they were when the program was built.
function(verbatim_embed target function file)
  set(generated "${CMAKE_CURRENT_BINARY_DIR}/embedded/${function}.cpp")
  add_custom_command(OUTPUT "${generated}"
    COMMAND "${CMAKE_COMMAND}" -DFUNCTION=${function} -DFILE=${file} -DOUTPUT=${generated}
      -P "${PROJECT_SOURCE_DIR}/cmake/embed_file.cmake"
    DEPENDS "${file}" "${PROJECT_SOURCE_DIR}/cmake/embed_file.cmake"
    VERBATIM)
  target_sources(${target} PRIVATE "${generated}")
endfunction()
