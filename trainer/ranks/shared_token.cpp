#include "trainer/ranks/shared_token.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/descriptor.h"
#include "trainer/ranks/credentials.h"
#include "trainer/ranks/local_address.h"

namespace verbatim {
namespace {

constexpr const char* kHint =
    "Give all ranks one token: --token-file FILE, or the environment variable VERBATIM_TOKEN\n"
    "(docs/cluster.md).";
constexpr const char* kGiven = "given";
constexpr std::string_view kFile = "file ";
constexpr std::size_t kDrawnSize = 64;  // of DrawToken

Status CheckNotNeeded(const RankSetting& rank, const std::string& address) {
  if (!IsOneHost(rank)) {
    return UsageError("the ranks may be on several hosts, and they have no token", kHint);
  }
  if (IsLoopback(address)) return {};
  return UsageError(fmt::format("other hosts reach {}, and the ranks have no token", address),
                    kHint);
}

/// Whether only this user can have written the file, and read it.
bool IsPrivate(int descriptor) {
  struct stat status {};
  return fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
         (status.st_mode & 077) == 0;
}

}  // namespace

Error GaveUpError(int rank) {
  return Error{ErrorKind::kFailed, fmt::format("rank {} gave up before it had joined", rank),
               "See what it said."};
}

SharedToken::SharedToken(SharedToken&& other) noexcept
    : token_(std::move(other.token_)), file_(std::exchange(other.file_, "")) {}

SharedToken::~SharedToken() {
  if (!file_.empty()) unlink(file_.c_str());
}

Result<SharedToken> SharedToken::Draw() {
  std::error_code error;
  std::string path =
      (std::filesystem::temp_directory_path(error) / "verbatim-token-XXXXXX").string();
  // mkstemp lets nobody but this user in.
  const Descriptor file(mkostemp(path.data(), O_CLOEXEC));
  SharedToken drawn(DrawToken());
  if (file.number() >= 0) drawn.file_ = path;
  const auto size = static_cast<ssize_t>(drawn.token_.size());
  if (file.number() < 0 || write(file.number(), drawn.token_.data(), drawn.token_.size()) != size) {
    return Failed(
        fmt::format("the run's token cannot be written to {}: {}", path, std::strerror(errno)),
        kHint);
  }
  return drawn;
}

Result<SharedToken> SharedToken::ReadFrom(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (file.number() < 0) {
    return Failed(fmt::format("rank 0's token, {}, cannot be read: {}", path, std::strerror(errno)),
                  kHint);
  }
  if (!IsPrivate(file.number())) {
    return Failed(fmt::format("rank 0's token, {}, is not this user's alone", path), kHint);
  }
  std::array<char, kDrawnSize> text{};
  const ssize_t count = read(file.number(), text.data(), text.size());
  if (count != static_cast<ssize_t>(text.size())) {
    return Failed(fmt::format("rank 0's token, {}, is incomplete", path), kHint);
  }
  return SharedToken(std::string(text.data(), text.size()));
}

Result<SharedToken> SharedToken::Agree(const RankSetting& rank, const NetworkSetting& network,
                                       const std::string& address,
                                       const std::function<std::string(const char*)>& key,
                                       RendezvousStore& store) {
  if (!network.token.empty()) {
    RETURN_IF_ERROR(RunKey::Make(network.token, ""));  // whether it is long enough
    if (rank.rank == 0) RETURN_IF_ERROR(store.Set(key("token"), kGiven));
    return SharedToken(network.token);
  }
  RETURN_IF_ERROR(CheckNotNeeded(rank, address));
  if (rank.rank == 0) {
    ASSIGN_OR_RETURN(SharedToken drawn, Draw());
    RETURN_IF_ERROR(store.Set(key("token"), std::string(kFile) + drawn.file_));
    return drawn;
  }
  ASSIGN_OR_RETURN(const std::string where, store.Get(key("token"), network.join_timeout_ms));
  if (where.rfind(kFile, 0) == 0) return ReadFrom(where.substr(kFile.size()));
  if (where == kGaveUp) return tl::unexpected(GaveUpError(0));
  return UsageError(fmt::format("rank 0 was given a token, and rank {} was not", rank.rank), kHint);
}

}  // namespace verbatim
