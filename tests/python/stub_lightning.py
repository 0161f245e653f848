"""As much of torch and Lightning as sifr's strategy touches, so that `make test` runs it without
them. tests/soak/test_soak_lightning.sh has the real ones."""

import contextlib
import pickle
import sys
import types

names = {}


def module(name, **content):
    made = names[name] = types.ModuleType(name)
    made.__path__ = []
    made.__dict__.update(content)
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(names[parent], last, made)


class Tensor:
    def __init__(self, value=0.0, shape=()):
        self.value, self.shape = value, shape

    def fill_(self, value):
        self.value = value


class Module:
    def __init__(self):
        self._modules, self._parameters = {}, {}

    def add_module(self, name, made):
        self._modules[name] = made

    def get_submodule(self, name):
        return self._modules[name]

    def register_parameter(self, name, made):
        self._parameters[name] = made

    def modules(self):
        return [self, *(m for one in self._modules.values() for m in one.modules())]

    def named_parameters(self, prefix=""):
        for name, made in self._parameters.items():
            yield prefix + name, made
        for name, one in self._modules.items():
            yield from one.named_parameters(f"{prefix}{name}.")

    def parameters(self):
        return [p for m in self.modules() for p in m._parameters.values()]


class Parameter:
    def __init__(self, data, requires_grad=True):
        self.data, self.requires_grad, self.grad = data, requires_grad, None


class Optimizer:
    def __init__(self, parameters, defaults):
        self.param_groups = [{"params": parameters, **defaults}]


class LightningModule(Module):
    CHECKPOINT_HYPER_PARAMS_KEY = "hyper_parameters"
    automatic_optimization = True
    trainer = None

    def save_hyperparameters(self):
        frame = sys._getframe(1).f_locals
        self.hparams = {n: frame[n] for n in ("model_dir", "config")} | frame["flags"]

    def log(self, name, value, **_):
        self.trainer.logged[name] = value.value

    def backward(self): ...

    optimizer_step = optimizer_zero_grad = configure_gradient_clipping = backward
    lr_scheduler_step = predict_step = on_before_backward = on_after_backward = backward
    on_load_checkpoint = lambda self, checkpoint: None  # noqa: E731


class ParallelStrategy:
    def __init__(self, cluster_environment):
        self.cluster_environment = cluster_environment
        self._lightning_module, self._checkpoint_io, self.parallel_devices = None, None, []

    lightning_module = property(lambda self: self._lightning_module)
    world_size = property(lambda self: self.cluster_environment.world_size())
    global_rank = property(lambda self: self.cluster_environment.global_rank())

    def connect(self, model):
        self._lightning_module = model

    def setup_optimizers(self, trainer):
        trainer.optimizers = [self._lightning_module.configure_optimizers()]


class Callback:
    def on_before_backward(self): ...

    def on_after_backward(self): ...


class Registry(dict):
    def register(self, name, strategy, description):
        self[name] = strategy


def save(value, path):
    with open(path, "wb") as file:
        pickle.dump(value, file)


def load(path, weights_only=None):
    with open(path, "rb") as file:
        return pickle.load(file)


def nothing(*_):
    return None


registry = Registry()
callbacks = [
    "BaseFinetuning", "BatchSizeFinder", "GradientAccumulationScheduler", "LearningRateFinder",
    "ModelCheckpoint", "ModelPruning", "OnExceptionCheckpoint", "StochasticWeightAveraging",
    "WeightAveraging",
]  # fmt: skip
module("torch", Tensor=Tensor, save=save, load=load, float64="float64")
names["torch"].tensor = lambda value, dtype: Tensor(value)
names["torch"].zeros = lambda shape, dtype: Tensor(0.0)
names["torch"].empty = lambda shape, device: Tensor(shape=shape)
names["torch"].device = lambda kind: types.SimpleNamespace(type=kind)
module("torch.nn", Module=Module, Parameter=Parameter)
module("torch.optim", Optimizer=Optimizer)
module("torchmetrics", Metric=type("Metric", (), {}))
module("lightning")
for name in ("fabric", "fabric.utilities", "fabric.plugins", "fabric.plugins.environments"):
    module(f"lightning.{name}")
module("lightning.fabric.utilities.rank_zero", rank_zero_only=types.SimpleNamespace())
module(
    "lightning.fabric.plugins.environments.cluster_environment",
    ClusterEnvironment=type("ClusterEnvironment", (), {}),
)
module("lightning.pytorch", LightningModule=LightningModule, Trainer=object)
module("lightning.pytorch.strategies", ParallelStrategy=ParallelStrategy, StrategyRegistry=registry)
module("lightning.pytorch.callbacks", Callback=Callback)
for name in callbacks:
    setattr(names["lightning.pytorch.callbacks"], name, type(name, (Callback,), {}))
module("lightning.pytorch.trainer")
module("lightning.pytorch.trainer.call", _call_callback_hooks=nothing)
names["lightning.pytorch.trainer.call"]._call_lightning_module_hook = nothing
module("lightning.pytorch.trainer.states", TrainerFn=types.SimpleNamespace(FITTING="fit"))
module("lightning_utilities")
module("lightning_utilities.core")
module("lightning_utilities.core.rank_zero", rank_zero_warn=nothing)


@contextlib.contextmanager
def in_place():
    """These modules are what is imported."""
    sys.modules.update(names)
    try:
        yield names
    finally:
        for name in names:
            sys.modules.pop(name, None)
