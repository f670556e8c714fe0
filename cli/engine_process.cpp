#include "cli/engine_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "cli/forward.h"
#include "cli/json_text.h"

extern char** environ;

namespace verbatim {
namespace {

/// This process's environment with the profile's variables.
std::vector<std::string> EnvironmentFor(Numerics numerics) {
  std::vector<std::string> variables;
  const auto profile = NumericProfileVariables(numerics);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    bool replaced = false;
    for (const auto& [name, value] : profile) replaced |= text.rfind(name + "=", 0) == 0;
    if (!replaced) variables.push_back(text);
  }
  for (const auto& [name, value] : profile) variables.push_back(name + "=" + value);
  return variables;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

Error CannotStart(const std::string& program, int error) {
  return Error{ErrorKind::kFailed,
               fmt::format("{} cannot be started: {}", program, std::strerror(error)),
               "Build it again for this machine, or let VERBATIM_ENGINE name another."};
}

std::string ReadAll(int descriptor) {
  std::string text;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t count = read(descriptor, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

/// Standard output of a process that ended with exit code 0.
Result<std::string> OutputOf(std::vector<std::string> words, Numerics numerics) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return tl::unexpected(CannotStart(words[0], errno));
  std::vector<std::string> variables = EnvironmentFor(numerics);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  pid_t process = 0;
  const int error = posix_spawn(&process, words[0].c_str(), &actions, nullptr,
                                Pointers(words).data(), Pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  const std::string output = error == 0 ? ReadAll(ends[0]) : "";
  close(ends[0]);
  if (error != 0) return tl::unexpected(CannotStart(words[0], error));
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return output;
  return Failed(WIFEXITED(status)
                    ? fmt::format("{} ended with exit code {}", words[0], WEXITSTATUS(status))
                    : fmt::format("{} was ended by signal {}", words[0], WTERMSIG(status)),
                "See its message above.");
}

std::optional<EngineDescription> ParseDescription(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("environment") || !json.contains("devices")) {
    return std::nullopt;
  }
  EngineDescription description;
  for (const auto& [key, value] : json["environment"].items()) {
    if (!value.is_string()) return std::nullopt;
    description.environment.push_back({key, value.get<std::string>()});
  }
  for (const Json& device : json["devices"]) {
    if (!device.is_string()) return std::nullopt;
    description.devices.push_back(device.get<std::string>());
  }
  if (json.contains("cuda") && json["cuda"].is_string()) description.cuda = json["cuda"];
  return description;
}

}  // namespace

std::string EngineDescriptionJson(const EngineDescription& description) {
  Json json;
  json["environment"] = Json::object();
  for (const EnvironmentRow& row : description.environment) {
    json["environment"][row.key] = row.value;
  }
  json["devices"] = description.devices;
  json["cuda"] = description.cuda;
  return ToJsonText(json);
}

Result<EngineDescription> AskEngine(const std::filesystem::path& engine, Numerics numerics,
                                    const std::string& device, std::int64_t threads_per_stage) {
  ASSIGN_OR_RETURN(const std::string output,
                   OutputOf({engine.string(), "doctor", "--describe-engine", device,
                             "--threads-per-stage", std::to_string(threads_per_stage)},
                            numerics));
  if (auto description = ParseDescription(output)) return *std::move(description);
  return Failed(fmt::format("{} is no verbatim-engine of this version", engine.string()),
                "Install the two programs together.");
}

}  // namespace verbatim
