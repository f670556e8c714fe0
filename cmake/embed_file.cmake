# Writes OUTPUT, a C++ file whose FUNCTION returns the bytes of FILE. See VerbatimEmbed.cmake.
file(READ "${FILE}" bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "((0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,))" "\\1\n" bytes
  "${bytes}")
file(WRITE "${OUTPUT}" "#include <string_view>

namespace verbatim {
std::string_view ${FUNCTION}();
std::string_view ${FUNCTION}() {
  static constexpr unsigned char kBytes[] = {
${bytes}};
  return {reinterpret_cast<const char*>(kBytes), sizeof(kBytes)};
}
}  // namespace verbatim
")
