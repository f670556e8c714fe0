#include "trainer/ranks/sealed_text.h"

namespace verbatim {
namespace {

constexpr std::size_t kSealDigits = 64;

}  // namespace

std::string SealText(const RunKey& key, const std::string& name, const std::string& text) {
  return ToHex(key.Seal(name, text)) + text;
}

std::optional<std::string> OpenText(const RunKey& key, const std::string& name,
                                    const std::string& sealed) {
  const auto seal = Hash256FromHex(sealed.substr(0, kSealDigits));
  if (!seal) return std::nullopt;
  std::string text = sealed.substr(kSealDigits);
  return key.IsSealed(name, text, *seal) ? std::optional(std::move(text)) : std::nullopt;
}

}  // namespace verbatim
