// Records that released versions left behind: they open and verify for ever, their content is what
// it was, and the heads and proofs kept of them hold. A new schema version adds a folder here.
#include <gtest/gtest.h>

#include <filesystem>

#include "recorder/content_digest.h"
#include "store/proof.h"
#include "store/reader.h"
#include "verify/examine.h"
#include "verify/head_check.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;

// Interrupted and resumed, at level `full`, with checkpoints and signed heads.
const fs::path kVersion4 = fs::path(VERBATIM_RELEASED_RECORDS) / "version-4";

TEST(ReleasedRecords, Version4Verifies) {
  const std::string record = kVersion4 / "run.db";
  const auto reader = RecordReader::Open(record);
  ASSERT_TRUE(reader) << reader.error().message;
  Verdict verdict = ExamineRecord(**reader, record);
  const auto key = ReadPublicKey(kVersion4 / "run.key.pub");
  ASSERT_TRUE(key) << key.error().message;
  const auto heads = ReadKeptHeads({kVersion4 / "run.heads"});
  ASSERT_TRUE(heads) << heads.error().message;
  EXPECT_EQ(heads->size(), 4u);
  AddHeadCheck(**reader, *heads, *key, verdict);
  EXPECT_EQ(verdict.exit_code(), 0);
  for (const Check& check : verdict.checks) {
    const bool is_reexecution = check.name == kCheckReexecution;
    EXPECT_EQ(check.outcome, is_reexecution ? Outcome::kNotRun : Outcome::kPassed) << check.name;
  }
  EXPECT_EQ((*reader)->Resumptions().value().size(), 1u);
  EXPECT_EQ((*reader)->Checkpoints().value().size(), 2u);
}

TEST(ReleasedRecords, Version4HasItsContent) {
  const auto reader = RecordReader::Open(kVersion4 / "run.db");
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ(ToHex(ContentDigest(**reader).value()),
            "f129d06e9ec5240f2d3bd3df8120b48533a599c1db073c7bd761485a0a1932cb");
  EXPECT_EQ(ToHex((*reader)->HeadNow().value().content_root),
            "0d76f8f230afd1a6f4b5ddf059325f19dc27af8d5b0d4568ae210c03ae57158f");
}

TEST(ReleasedRecords, Version4sProofHolds) {
  const auto proof = ReadProof(kVersion4 / "subnet7.proof");
  ASSERT_TRUE(proof) << proof.error().message;
  EXPECT_TRUE(Holds(*proof));
}

}  // namespace
}  // namespace verbatim
