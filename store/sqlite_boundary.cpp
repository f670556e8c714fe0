#include "store/sqlite_boundary.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <cerrno>
#include <system_error>

namespace verbatim {
namespace {

struct Explanation {
  std::string what;
  std::string hint;
};

bool IsOutOfSpace(int code, int system_error) {
  return code == SQLITE_FULL ||
         (code == SQLITE_IOERR && (system_error == ENOSPC || system_error == EDQUOT));
}

Explanation ExplainSpace() {
  return {"the disk is full",
          "free space there, or record to another disk; what was committed stays readable"};
}

Explanation ExplainInputOutput(const std::string& what, int system_error) {
  if (system_error == EFBIG) {
    return {"the file has reached the size limit of this process or file system",
            "raise the limit (ulimit -f), or record to another file system; what was committed "
            "stays readable"};
  }
  const std::string cause =
      system_error == 0 ? what : std::generic_category().message(system_error);
  return {fmt::format("input/output error: {}", cause), "check the disk and the connection to it"};
}

Explanation ExplainAccess(int code, Doing doing) {
  if (code == SQLITE_READONLY) {
    return {"the file or its folder cannot be written", "change the permissions or the path"};
  }
  if (doing == Doing::kWriting) {
    return {"the file cannot be opened for writing",
            "check that its folder can be written, and that its disk has room"};
  }
  return {"the file cannot be opened", "check the permissions of the file and of its folder"};
}

Explanation Explain(int code, const std::string& what, int system_error, Doing doing) {
  if (IsOutOfSpace(code, system_error)) return ExplainSpace();
  switch (code) {
    case SQLITE_IOERR:
      return ExplainInputOutput(what, system_error);
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return ExplainAccess(code, doing);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {"another process holds a lock on the file",
              "end that process (fuser FILE shows it), then try again"};
    case SQLITE_NOTADB:
      return {"the file is no SQLite database", "check the path"};
    case SQLITE_CORRUPT:
      return {fmt::format("the file is damaged: {}", what),
              "restore it from a copy; sqlite3's .recover saves what can be read"};
    case SQLITE_CONSTRAINT:
      return {fmt::format("a row contradicts the rows recorded before: {}", what), ""};
    default:
      break;
  }
  if (doing == Doing::kReading) {
    return {fmt::format("the file is damaged, or not what this program writes: {}", what),
            "restore it from a copy"};
  }
  return {what, ""};
}

bool BlamesTheFile(int code) {
  return code != SQLITE_BUSY && code != SQLITE_LOCKED && code != SQLITE_IOERR &&
         code != SQLITE_NOMEM && code != SQLITE_FULL;
}

// sqlite3_system_errno knows nothing of a COMMIT that fails; the file it failed on does.
int FileSystemError(sqlite3* handle) {
  int error = 0;
  sqlite3_file_control(handle, "main", SQLITE_FCNTL_LAST_ERRNO, &error);
  if (error != 0) return error;
  sqlite3_file* journal = nullptr;
  sqlite3_file_control(handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, &journal);
  if (journal == nullptr || journal->pMethods == nullptr) return 0;
  journal->pMethods->xFileControl(journal, SQLITE_FCNTL_LAST_ERRNO, &error);
  return error;
}

}  // namespace

Error TranslateSqliteError(int code, const std::string& what, int system_error,
                           const std::filesystem::path& path, Doing doing) {
  const int primary = code & 0xff;
  Explanation explanation = Explain(primary, what, system_error, doing);
  const ErrorKind kind = doing == Doing::kReading && BlamesTheFile(primary) ? ErrorKind::kBadInput
                                                                            : ErrorKind::kFailed;
  return Error{kind,
               fmt::format("cannot {} {}: {}", doing == Doing::kReading ? "read" : "write",
                           path.string(), explanation.what),
               std::move(explanation.hint)};
}

int SystemErrorOf(SQLite::Database* database) {
  if (database == nullptr) return 0;
  const int error = sqlite3_system_errno(database->getHandle());
  return error != 0 ? error : FileSystemError(database->getHandle());
}

std::string SetJournalMode(SQLite::Database& database, const std::string& mode) {
  SQLite::Statement statement(database, "PRAGMA journal_mode = " + mode);
  std::string result;
  while (statement.executeStep()) result = statement.getColumn(0).getString();
  return result;
}

Transaction::Transaction(SQLite::Database& database, const char* begin)
    : database_(database), is_outermost_(sqlite3_get_autocommit(database.getHandle()) != 0) {
  if (is_outermost_) database_.exec(begin);
}

Transaction::~Transaction() {
  // SQLite has already rolled back after some errors (disk full, I/O).
  if (!is_outermost_ || sqlite3_get_autocommit(database_.getHandle()) != 0) return;
  sqlite3_exec(database_.getHandle(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void Transaction::Commit() {
  if (is_outermost_) database_.exec("COMMIT");
}

}  // namespace verbatim
