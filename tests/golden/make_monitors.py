#!/usr/bin/env python3
"""Makes tests/golden/monitors/: what others write of the same events.

    python3 tests/golden/make_monitors.py DEEPSPEED

Needs `pip install tensorboard`, and the unpacked source of DeepSpeed 0.19.8 in DEEPSPEED (`pip
download deepspeed==0.19.8 --no-deps --no-binary :all:`). The CSV files are by DeepSpeed's own
csvMonitor, twice opened; events.bin by TensorBoard's RecordWriter and its messages.
"""
import importlib.util
import os
import shutil
import sys
import types

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "monitors")
NUMBERS = [0.0, 1.0, 0.1, 1e-4, 1e-5, 2.5e-7, 3e-3, 5.737002368085086, 65536.0, 67108864.0, 1e15,
           1e16, 1.5e16, 1e22, 1.7976931348623157e308, 5e-324, 123456.789, -0.0, -2.5, 1 / 3,
           9007199254740993.0, float("nan"), float("inf"), float("-inf")]
TIME = 1700000000.25


def csv_monitor(source):
    comm = types.ModuleType("deepspeed.comm")
    comm.get_rank = lambda: 0
    package = types.ModuleType("deepspeed")
    package.comm = comm
    package.__path__ = []
    monitors = types.ModuleType("deepspeed.monitor")
    monitors.__path__ = []
    base = types.ModuleType("deepspeed.monitor.monitor")
    base.Monitor = type("Monitor", (), {"__init__": lambda self, config: None})
    sys.modules.update({"deepspeed": package, "deepspeed.comm": comm, "deepspeed.monitor": monitors,
                        "deepspeed.monitor.monitor": base})
    path = os.path.join(source, "deepspeed", "monitor", "csv_monitor.py")
    spec = importlib.util.spec_from_file_location("deepspeed.monitor.csv_monitor", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.csvMonitor(types.SimpleNamespace(enabled=True, output_path=OUT, job_name="job"))


def events():
    from tensorboard.compat.proto.event_pb2 import Event, SessionLog
    from tensorboard.compat.proto.summary_pb2 import Summary
    yield Event(wall_time=TIME, file_version="brain.Event:2")
    yield Event(wall_time=TIME, step=801, session_log=SessionLog(status=SessionLog.START))
    for i, number in enumerate([5.737002368085086, 0.0, float("nan"), 3e-3]):
        value = Summary.Value(tag="Train/Samples/train_loss", simple_value=number)
        yield Event(wall_time=TIME + i, step=i * 400, summary=Summary(value=[value]))


def main():
    from tensorboard.summary.writer.record_writer import RecordWriter
    shutil.rmtree(OUT, ignore_errors=True)
    os.makedirs(OUT)
    for first in 0, len(NUMBERS):
        monitor = csv_monitor(sys.argv[1])
        for i, number in enumerate(NUMBERS):
            monitor.write_events([("Train/Samples/train_loss", number, (first + i + 1) * 8)])
    shutil.move(os.path.join(OUT, "job", "Train_Samples_train_loss.csv"),
                os.path.join(OUT, "train_loss.csv"))
    os.rmdir(os.path.join(OUT, "job"))
    with open(os.path.join(OUT, "events.bin"), "wb") as file:
        writer = RecordWriter(file)
        for event in events():
            writer.write(event.SerializeToString())
        writer.flush()


if __name__ == "__main__":
    main()
