#include "recorder/content_digest.h"

#include "base/encoding.h"
#include "store/merkle.h"

namespace verbatim {
namespace {

constexpr std::string_view kLabel = "verbatim.content.2";

void AddDigest(Encoder& out, const Digest& digest) {
  out.Bytes(digest.bytes.data(), digest.bytes.size());
}

template <typename Numbers>
void AddNumbers(Encoder& out, const Numbers& numbers) {
  out.U32(static_cast<std::uint32_t>(numbers.size()));
  for (const auto number : numbers) out.U32(number);
}

void AddAccess(Encoder& out, const AccessRow& access) {
  out.U32(static_cast<std::uint32_t>(access.layer)).I64(access.read_seq).I64(access.base_seq);
  const auto digests = {access.weights, access.optimizer_state, access.gradients};
  std::uint8_t present = 0, bit = 1;
  for (const auto& digest : digests) {
    if (digest) present |= bit;
    bit <<= 1;
  }
  out.U8(present);
  for (const auto& digest : digests) {
    if (digest) AddDigest(out, *digest);
  }
}

void AddHead(Encoder& out, const std::vector<LayerRow>& layers,
             const std::vector<EvaluationRow>& evaluations) {
  out.String(kLabel);
  out.U32(static_cast<std::uint32_t>(layers.size()));
  for (const LayerRow& layer : layers) {
    out.U32(static_cast<std::uint32_t>(layer.layer));
    AddDigest(out, layer.initial_digest);
  }
  out.U32(static_cast<std::uint32_t>(evaluations.size()));
  for (const EvaluationRow& evaluation : evaluations) {
    out.I64(evaluation.index);
    AddNumbers(out, evaluation.choices);
    out.I64(evaluation.correct).I64(evaluation.total);
  }
}

}  // namespace

std::string EncodeSubnetContent(const SubnetRow& subnet) {
  Encoder out;
  constexpr std::size_t kAccessBytesMax = 4 + 8 + 8 + 1 + 3 * 16;
  out.Reserve(64 + 4 * (subnet.choices.size() + subnet.samples.size()) +
              kAccessBytesMax * subnet.accesses.size() + 24 * subnet.activations.size());
  out.I64(subnet.seq);
  AddNumbers(out, subnet.choices);
  AddNumbers(out, subnet.samples);
  AddDigest(out, subnet.batch_digest);
  out.U32(subnet.loss_bits);
  out.U32(static_cast<std::uint32_t>(subnet.accesses.size()));
  for (const AccessRow& access : subnet.accesses) AddAccess(out, access);
  out.U32(static_cast<std::uint32_t>(subnet.activations.size()));
  for (const ActivationRow& activation : subnet.activations) {
    out.U32(static_cast<std::uint32_t>(activation.microbatch));
    out.U32(static_cast<std::uint32_t>(activation.position));
    AddDigest(out, activation.digest);
  }
  if (subnet.step) out.I64(subnet.step->step).String(EncodeFacts(*subnet.step));
  return out.bytes();
}

std::string EncodeSubnetLayout(const SubnetRow& subnet) {
  Encoder out;
  constexpr std::size_t kTaskBytes = 4 + 4 + 1 + 8 + 8;
  out.Reserve(16 + 4 * subnet.accesses.size() + kTaskBytes * subnet.activities.size());
  out.I64(subnet.seq);
  out.U32(static_cast<std::uint32_t>(subnet.accesses.size()));
  for (const AccessRow& access : subnet.accesses) {
    out.U32(static_cast<std::uint32_t>(access.stage));
  }
  out.U32(static_cast<std::uint32_t>(subnet.activities.size()));
  for (const ActivityRow& task : subnet.activities) {
    out.U32(static_cast<std::uint32_t>(task.stage));
    out.U32(static_cast<std::uint32_t>(task.microbatch));
    out.U8(static_cast<std::uint8_t>(task.phase)).I64(task.begin_ns).I64(task.end_ns);
  }
  return out.bytes();
}

Hash256 ContentLeaf(const SubnetRow& subnet) {
  return LeafHash(EncodeSubnetContent(subnet));
}

Hash256 LayoutLeaf(const SubnetRow& subnet) {
  return LeafHash(EncodeSubnetLayout(subnet));
}

Result<Hash256> ContentDigest(const RecordReader& reader) {
  ASSIGN_OR_RETURN(const std::vector<LayerRow> layers, reader.Layers());
  ASSIGN_OR_RETURN(const std::vector<EvaluationRow> evaluations, reader.Evaluations());
  MerkleFrontier tree;
  ReadOptions options;
  options.activations = true;
  RETURN_IF_ERROR(reader.ForEachSubnet(options, [&](const SubnetRow& subnet) {
    tree.Add(ContentLeaf(subnet));
    return true;
  }));
  Encoder out;
  AddHead(out, layers, evaluations);
  out.U64(static_cast<std::uint64_t>(tree.size()));
  const Hash256 root = tree.Root();
  out.Bytes(root.bytes.data(), root.bytes.size());
  return Blake2b(out.bytes());
}

}  // namespace verbatim
