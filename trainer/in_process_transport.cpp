#include "trainer/in_process_transport.h"

#include "base/check.h"

namespace verbatim {

void InProcessTransport::Send(int stage, const Task& task, HandedTensor tensor) {
  Mailbox& mailbox = mailboxes_[stage];
  const std::lock_guard lock(mailbox.mutex);
  VERBATIM_CHECK(mailbox.tensors.emplace(task, std::move(tensor)).second, "subnet {} sent twice",
                 task.seq);
}

HandedTensor InProcessTransport::Receive(int stage, const Task& task) {
  Mailbox& mailbox = mailboxes_[stage];
  const std::lock_guard lock(mailbox.mutex);
  auto node = mailbox.tensors.extract(task);
  VERBATIM_CHECK(!node.empty(), "nothing arrived on stage {} for subnet {}", stage, task.seq);
  return std::move(node.mapped());
}

}  // namespace verbatim
