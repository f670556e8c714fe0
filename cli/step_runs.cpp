#include "cli/step_runs.h"

#include <fmt/format.h>

#include "cli/commands.h"
#include "supernet/json_reader.h"
#include "supernet/object_reader.h"
#include "supernet/text_file.h"

namespace verbatim {

Status RefuseStepRun(const RecordReader& reader, std::string_view command) {
  if (reader.Kind() != RunKind::kSteps) return {};
  return UsageError(
      fmt::format("{}: a step run was recorded by another trainer; its record holds digests, no "
                  "weights, and cannot be executed here",
                  command),
      "Run that trainer again, and compare the two records: verbatim diff A.db B.db");
}

CLI::Option* AddRenameOption(CLI::App& command, std::filesystem::path& file) {
  return command
      .add_option("--rename", file,
                  "Of step runs: a JSON object of layers that have another name in the second "
                  "record. Example: --rename names.json, with {\"encoder.fc\": \"enc.linear\"}")
      ->type_name("FILE")
      ->check(NamedPath());
}

Result<LayerNames> ReadRenames(const std::filesystem::path& file) {
  LayerNames names;
  if (file.empty()) return names;
  ASSIGN_OR_RETURN(const std::string text,
                   ReadTextFile(file, "the file of --rename",
                                "It is a JSON object: {\"name in A\": \"name in B\"}."));
  const std::string source = file.string();
  ASSIGN_OR_RETURN(const JsonNode root, ParseJson(text, source));
  ReadErrors errors(source);
  if (ExpectKind(root, JsonKind::kObject, "", &errors)) {
    for (const JsonNode& member : root.children) {
      if (!ExpectKind(member, JsonKind::kString, member.key, &errors)) break;
      names.emplace(member.key, member.text);
    }
  }
  if (errors.first()) return tl::unexpected(*errors.first());
  return names;
}

}  // namespace verbatim
