// Texts that only those who know a run's token can write: what ranks leave in a rendezvous. Hides
// nothing.
#pragma once

#include <optional>
#include <string>

#include "trainer/ranks/credentials.h"

namespace verbatim {

/// `name` is sealed with the text: a text sealed under one name opens under no other.
std::string SealText(const RunKey& key, const std::string& name, const std::string& text);
/// Nothing where somebody else sealed it, or for another name, or it was changed.
std::optional<std::string> OpenText(const RunKey& key, const std::string& name,
                                    const std::string& sealed);

}  // namespace verbatim
