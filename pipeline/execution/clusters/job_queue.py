"""Workers as jobs of a queue (SLURM, PBS), by dask-jobqueue; the scheduler runs in this process."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest import mock

from tornado.ioloop import PeriodicCallback

from ...core.errors import ClusterError, ConfigError
from ...data.storage.files import storage_errors
from ...data.storage.urls import normalize_url
from ..worker_threads import CORES_VARIABLE
from .profiles import JobQueueProfile, shell_word, walltime_seconds
from .tls import LOOPBACK_HTTP, NO_HTTP, closed_http, security_of

# At import it sets a handler of SIGINT: Ctrl-C, and the signal before the walltime, would end a
# driver with exit code 0, and the record of a cancelled run would say that it failed.
with mock.patch.object(signal, "signal"):
    import dask_jobqueue

LIFETIME, STAGGER = 0.85, 0.1  # of the walltime: a worker leaves between 75 % and 95 % of it

_CLUSTERS = {"slurm": "SLURMCluster", "pbs": "PBSCluster"}
_SECONDS_BETWEEN_REQUESTS = 10.0


def open_job_queue(profile: JobQueueProfile) -> dask_jobqueue.JobQueueCluster:
    """Start a cluster whose jobs are submitted again when they end, until it is closed.

    Raises
    ------
    ConfigError
        If an interface, TLS files or a job directory cannot be used.
    ClusterError
        If the queue's commands are missing, or the queue refuses such a job.
    """
    cluster = job_queue_cluster(profile)
    try:
        if profile.cluster == "slurm":
            _ask_slurm(cluster.job_script())
        cluster.scale(jobs=profile.n_workers)
        _keep_asking(cluster, profile.n_workers)
    except BaseException:
        cluster.close()
        raise
    return cluster


def job_queue_cluster(profile: JobQueueProfile) -> dask_jobqueue.JobQueueCluster:
    """Start the scheduler of a profile, without jobs.

    A job holds one worker process with one thread, whose kernels use all cores of the
    job. dask-jobqueue requests as many cores as a worker has threads, so the last ``--nthreads``
    sets the threads to one.
    """
    folder = Path(normalize_url(profile.job_directory))
    with storage_errors(f"job_directory {folder}", "cannot be made", kind=ConfigError):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    life, spill = walltime_seconds(profile.walltime), profile.spill_directory
    kind: type[dask_jobqueue.JobQueueCluster] = getattr(dask_jobqueue, _CLUSTERS[profile.cluster])
    try:
        with closed_http(profile.dashboard):
            return kind(
                cores=profile.cores_per_worker,
                processes=1,
                memory=profile.memory_limit,
                walltime=profile.walltime,
                queue=profile.queue,
                account=profile.account,
                interface=profile.interface,
                security=security_of(profile) or True,
                shared_temp_directory=str(folder),
                log_directory=str(folder),
                local_directory=spill and shell_word(spill),
                job_name="bagbasis",
                job_extra_directives=list(profile.directives),
                job_script_prologue=[
                    *profile.prologue,
                    *(f"export {name}={value}" for name, value in _environment(profile).items()),
                ],
                python=shell_word(profile.python or sys.executable),
                scheduler_options={
                    "dashboard_address": LOOPBACK_HTTP,
                    "dashboard": profile.dashboard,
                },
                worker_extra_args=[
                    *("--nthreads", "1"),
                    *("--dashboard-address", LOOPBACK_HTTP),
                    "--dashboard" if profile.dashboard else "--no-dashboard",
                    *("--lifetime", f"{LIFETIME * life:.0f}s"),
                    *("--lifetime-stagger", f"{STAGGER * life:.0f}s"),
                ],
            )
    except (ValueError, RuntimeError) as error:  # such as an interface that is not there
        raise ConfigError(f"no {profile.cluster} cluster can be made: {error}") from error


def _environment(profile: JobQueueProfile) -> dict[str, object]:
    """Return the environment variables that a job exports for its worker."""
    variables: dict[str, object] = {
        CORES_VARIABLE: profile.cores_per_worker,
        "PYTHONSAFEPATH": 1,  # no script of the folder that the jobs start in is imported
    }
    if not profile.dashboard:
        variables |= {f"DASK_{key.upper().replace('.', '__')}": "'[]'" for key in NO_HTTP}
    return variables


def waiting_hint(profile: JobQueueProfile) -> str:
    """Return a hint for the case that no worker joins."""
    command = {"slurm": "squeue", "pbs": "qstat"}[profile.cluster]
    return f"see {command}, and the logs of the jobs in {profile.job_directory}"


def _ask_slurm(script: str) -> None:
    """Raise errors that sbatch would raise, because dask-jobqueue only logs them."""
    with tempfile.NamedTemporaryFile("w", suffix=".sh", prefix="bagbasis-") as file:
        file.write(script)
        file.flush()
        command = ["sbatch", "--test-only", file.name]
        try:
            asked = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError as error:
            raise ClusterError("sbatch is not here: this machine submits no SLURM jobs") from error
    if asked.returncode:
        reason = next((line for line in asked.stderr.splitlines() if line.strip()), "no reason")
        wanted = [line for line in script.splitlines() if line.startswith("#SBATCH")]
        raise ClusterError(
            f"SLURM refuses the job: {reason.removeprefix('sbatch: error: ')} ({', '.join(wanted)})"
        )


def _keep_asking(cluster: dask_jobqueue.JobQueueCluster, n_jobs: int) -> None:
    """Submit a job again when one ends: at its walltime, cancelled, or with its node.

    Dask's adaptive scaling still counts a lost worker as requested, and never requests it again.
    """
    again = PeriodicCallback(lambda: cluster.scale(jobs=n_jobs), 1000 * _SECONDS_BETWEEN_REQUESTS)
    cluster.periodic_callbacks["jobs-that-ended"] = again
    assert cluster.loop is not None  # it is open
    cluster.loop.add_callback(again.start)
