"""Users whose data lie on the workers of a Dask cluster, beside the same fit on threads.

Workers send each other the rows of blocks that lie in two pieces, and pieces that Dask moves to an
idle worker.
"""

import os
import time
from concurrent.futures import Executor

import numpy as np

from accountant import WorkerChunks
from algorithms import LocalIHT
from benchmarks.measure import beside, options, seconds_of

FEATURES = 100
METHODS = ("coordinates", "gradients")


def some_users(seed, users):
    """Return features and targets of a piece; workers make their own."""
    rng = np.random.default_rng(seed)
    x = rng.choice(np.array([-1.0, 1.0]), (users, FEATURES))
    return x, x[:, 0] * 0.6 + x[:, 1] * 0.5


class Counted(Executor):
    """An executor that counts the bytes of tasks and of their results, as they are pickled."""

    def __init__(self, inner):
        self.inner, self.tasks, self.sent, self.back = inner, 0, 0, 0

    def submit(self, function, *arguments):
        """Count and submit a task."""
        from cloudpickle import dumps

        self.tasks += 1
        self.sent += len(dumps((function, arguments)))
        future = self.inner.submit(function, *arguments)
        future.add_done_callback(self._count_back)
        return future

    def _count_back(self, future):
        from cloudpickle import dumps

        self.back += len(dumps(future.result()))


def between_workers(client):
    """Return the bytes of rows and other data that workers have sent to each other."""
    sent = client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total)
    return sum(sent.values())


def processor_seconds(client):
    """Return those of this process, where the scheduler runs too, and of all workers."""
    return time.process_time() + sum(client.run(time.process_time).values())


def compared(client, executor, data, rows, method, repeats):
    """Print the seconds of both ways, in turns, and the traffic of a fit."""
    made = LocalIHT(epsilon=2.0, sparsity=2, noise_bound=0.1, method=method)
    seeded = LocalIHT(epsilon=2.0, sparsity=2, noise_bound=0.1, method=method, random_state=0)
    counted, moved = Counted(executor), between_workers(client)
    same = np.array_equal(seeded.fit(data, executor=counted).coef_, seeded.fit(*rows).coef_)
    moved = between_workers(client) - moved
    seconds, used = {"workers": [], "threads": []}, {"workers": [], "threads": []}
    for _ in range(repeats):
        for way, fit in (("workers", lambda: made.fit(data, executor=executor)),
                         ("threads", lambda: made.fit(*rows))):  # fmt: skip
            before = processor_seconds(client)
            seconds[way] += seconds_of(fit)
            used[way].append(processor_seconds(client) - before)
    held, threads = min(seconds["workers"]), min(seconds["threads"])
    cpu = min(used["workers"]) / min(used["threads"])
    rounds = seeded.rounds_ if method == "gradients" else 3 * (seeded.rounds_ - 1) + 1
    both = counted.sent + counted.back
    print(f"LocalIHT, {method}, {data.shape[0]:,} users x {FEATURES}, pieces on workers: "
          f"{held:.2f} s, {beside(held, threads, 'threads')} ({threads:.2f} s; aim 1.3), "
          f"processor time {cpu:.3g} x; same coefficients: {same}")  # fmt: skip
    print(f"  {rounds} questions in {counted.tasks} tasks: {both / rounds:,.0f} bytes a question "
          f"({counted.sent / rounds:,.0f} sent, {counted.back / rounds:,.0f} back), "
          f"{moved / rounds:,.0f} from worker to worker, of {8 * FEATURES * data.shape[0]:,} "
          "bytes of features")  # fmt: skip


def main():
    given = options(__doc__, users=1_000_000, pieces=8, repeats=5)
    users, pieces, repeats = given.users, given.pieces, given.repeats
    if given.quick:
        users, pieces, repeats = 4_000, 3, 1
    each = max(1, users // pieces)
    import distributed

    with (
        distributed.LocalCluster(
            n_workers=1 if given.quick else os.cpu_count(), threads_per_worker=1,
            processes=not given.quick, dashboard_address=":0",
        ) as cluster,
        distributed.Client(cluster) as client,
        client.get_executor() as executor,
    ):  # fmt: skip
        held = client.map(some_users, range(pieces), users=each)
        distributed.wait(held)
        data = WorkerChunks(held, [each] * pieces, (each * pieces, FEATURES))
        parts = [some_users(seed, each) for seed in range(pieces)]
        rows = tuple(np.concatenate(one) for one in zip(*parts, strict=True))
        del parts
        for method in METHODS:
            compared(client, executor, data, rows, method, repeats)


if __name__ == "__main__":
    main()
