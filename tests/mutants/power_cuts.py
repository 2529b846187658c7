"""Books that lose spends when the power is cut: each leaves a flush out, or makes it too early."""

from accountant import Book
from accountant.book.chain import head_pin
from accountant.book.chain.head_pin import Pins
from accountant.book.databases.sqlite import SQLite
from tests.mutants.edits import edit


def flushes_nothing(patch):
    """Leaves it to the system when commits reach the disk."""
    edit(patch, SQLite, "_flush", "os.fdatasync(self._wal_handle)", "pass")


def forgets_to_flush(patch):
    """Ends a transaction of a writer as one of a reader."""
    edit(patch, SQLite, "_transaction", "if after is not None:", "if False:")


def flushes_too_early(patch):
    """Flushes before the commit."""
    edit(
        patch, SQLite, "_transaction", 'self._db.execute("COMMIT")',
        'after = after and after()\n            self._db.execute("COMMIT")',
    )  # fmt: skip


def flushes_another_file(patch):
    """Flushes the file and not its log ahead."""
    edit(
        patch, SQLite, "_flush", "os.fdatasync(self._wal_handle)",
        "os.fdatasync(os.open(self._path, os.O_RDWR))",
    )  # fmt: skip


def flushes_twice(patch):
    """Waits for the disk once more than it must."""
    flush = SQLite._flush
    patch.setattr(SQLite, "_flush", lambda self: (flush(self), flush(self)))


def writes_to_a_log_that_was_removed(patch):
    """Flushes a file that has no name any more, and answers."""
    edit(patch, SQLite, "_flush", "self._refuse_without_log()", "pass")


def flushes_for_one_object_alone(patch):
    """Flushes what the first object of a process writes, and of no other one."""
    flush, writers = SQLite._flush, []

    def flushes_for_the_first(self):
        writers.append(self)
        if self is writers[0]:
            flush(self)

    patch.setattr(SQLite, "_flush", flushes_for_the_first)


def notes_what_is_not_flushed(patch):
    """Lets an end be noted that another process has committed, and not flushed."""
    edit(patch, SQLite, "reading", "durable and can_flush", "False")


def pins_in_memory(patch):
    """Leaves it to the system when a pin reaches its disk."""
    edit(patch, head_pin.HeadPin, "advance", "os.fsync(handle)", "pass")


def pins_nothing(patch):
    """Writes no pin after a spend."""
    patch.setattr(Pins, "advance", lambda self, head: None)


def checkpoints_unflushed(patch):
    """Lets SQLite copy its log to the file without a flush."""
    edit(patch, SQLite, "_connect", '"synchronous = NORMAL"', '"synchronous = OFF"')


def has_another_way_to_write(patch):
    """A public method of a book that no table names."""
    patch.setattr(Book, "forget", lambda self: None, raising=False)
