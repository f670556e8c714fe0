// The secret that the ranks of a run share.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"
#include "trainer/ranks/rendezvous.h"

namespace verbatim {

/// What a rank that fails before it can seal anything leaves in place of its texts.
inline constexpr const char* kGaveUp = "gave up";
Error GaveUpError(int rank);

/// The token as the command line gives it; or, where all ranks are on one host and none is given,
/// one that rank 0 draws and leaves in a file that only its user can read. The rendezvous carries
/// no more than the file's name.
class SharedToken {
 public:
  /// Waits on ranks other than 0 for rank 0. `key` names a key of this run in the store.
  /// kUsage where a token is needed or too short, kFailed where rank 0's cannot be had.
  static Result<SharedToken> Agree(const RankSetting& rank, const NetworkSetting& network,
                                   const std::string& address,
                                   const std::function<std::string(const char*)>& key,
                                   RendezvousStore& store);
  ~SharedToken();
  SharedToken(SharedToken&& other) noexcept;
  SharedToken& operator=(SharedToken&&) = delete;

  const std::string& token() const { return token_; }

 private:
  explicit SharedToken(std::string token) : token_(std::move(token)) {}

  static Result<SharedToken> Draw();
  static Result<SharedToken> ReadFrom(const std::string& path);

  std::string token_;
  std::string file_;  ///< to be removed; empty: none
};

}  // namespace verbatim
