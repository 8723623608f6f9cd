# SPDX-License-Identifier: MIT
"""A shim over libtanso.so by ctypes: as much as passing arrays to and fro needs.

An Array holds a tn_array. It speaks DLPack (__dlpack__, __dlpack_device__) and the array interfaces of NumPy and CUDA,
so that numpy.asarray(x), numpy.from_dlpack(x), torch.from_dlpack(x) and cupy.asarray(x) take it as it is.
"""
import ctypes
import json

VERSIONED, OLD = b"dltensor_versioned", b"dltensor"

_python = ctypes.pythonapi
_python.PyCapsule_New.restype = ctypes.py_object
_python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_python.PyCapsule_IsValid.argtypes = [ctypes.py_object, ctypes.c_char_p]
_python.PyCapsule_GetPointer.restype = ctypes.c_void_p
_python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_python.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Shape(ctypes.Structure):
    _fields_ = [("ndim", ctypes.c_int), ("dim", ctypes.c_int64 * 8)]


class Device(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_short), ("index", ctypes.c_short)]


CPU, CUDA = 1, 2


class Tanso:
    """The library; every array that comes from it is freed with its Python object."""

    def __init__(self, path):
        self.c = ctypes.CDLL(path)
        pointers = """tn_load_npy tn_map_npy tn_archive_load tn_archive_find tn_archive_new tn_from_dlpack tn_own
                      tn_from_dlpack_versioned tn_to_dlpack tn_to_dlpack_versioned tn_to tn_array_interface_json
                      tn_add tn_multiply tn_load_csv_with tn_from_host_with tn_archive_load_with"""
        for name in pointers.split():
            getattr(self.c, name).restype = ctypes.c_void_p
        for name in "tn_error tn_version tn_dtype_name tn_archive_name".split():
            getattr(self.c, name).restype = ctypes.c_char_p
        self.c.tn_device_of.restype = Device
        self.c.tn_shape_of.restype = Shape
        self.c.tn_dtype_parse.argtypes = [ctypes.c_char_p]
        self.live_arrays = self.c.tn_live_arrays
        self.live_arrays.restype = ctypes.c_size_t

    def check(self):
        message = self.c.tn_error().decode()
        self.c.tn_clear_error()
        if message:
            raise RuntimeError(message)

    def array(self, pointer):
        x = Array(self, self.c.tn_own(ctypes.c_void_p(pointer)))
        self.check()
        return x

    def from_dlpack(self, producer):
        """An array in the memory of an object with __dlpack__."""
        try:
            capsule = producer.__dlpack__(max_version=(1, 0))
        except TypeError:  # of before versions
            capsule = producer.__dlpack__()
        versioned = _python.PyCapsule_IsValid(capsule, VERSIONED)
        name = VERSIONED if versioned else OLD
        tensor = ctypes.c_void_p(_python.PyCapsule_GetPointer(capsule, name))
        take = self.c.tn_from_dlpack_versioned if versioned else self.c.tn_from_dlpack
        x = self.array(take(tensor))
        _python.PyCapsule_SetName(capsule, b"used_" + name)
        return x

    def load_npy(self, path, mapped=False):
        return self.array((self.c.tn_map_npy if mapped else self.c.tn_load_npy)(path.encode()))

    def save_npy(self, x, path):
        self.c.tn_save_npy(x.pointer, path.encode())
        self.check()

    def load_archive(self, path):
        archive = ctypes.c_void_p(self.c.tn_archive_load(path.encode()))
        self.check()
        found = {}
        for i in range(self.c.tn_archive_count(archive)):
            name = self.c.tn_archive_name(archive, i)
            entry = ctypes.c_void_p(self.c.tn_archive_find(archive, name))
            found[name.decode()] = self.array(self.c.tn_to(entry, self.c.tn_device_of(entry)))
        self.c.tn_archive_free(archive)
        return found

    def save_archive(self, arrays, path):
        archive = ctypes.c_void_p(self.c.tn_archive_new())
        for name, x in arrays.items():
            self.c.tn_archive_add(archive, name.encode(), x.pointer)
        self.c.tn_archive_save(archive, path.encode())
        self.c.tn_archive_free(archive)
        self.check()

    def load_csv(self, path):
        return self.array(self.c.tn_load_csv_with(path.encode(), None))

    def save_csv(self, x, path):
        self.c.tn_save_csv_with(x.pointer, path.encode(), None)
        self.check()


class Array:
    def __init__(self, tanso, pointer):
        self.tanso = tanso
        self.pointer = ctypes.c_void_p(pointer)

    def __del__(self):
        self.tanso.c.tn_free(self.pointer)

    def __add__(self, other):
        return self.tanso.array(self.tanso.c.tn_add(self.pointer, other.pointer))

    def to(self, kind, index=0):
        return self.tanso.array(self.tanso.c.tn_to(self.pointer, Device(kind, index)))

    def interface(self):
        text = ctypes.c_void_p(self.tanso.c.tn_array_interface_json(self.pointer))
        self.tanso.check()
        described = json.loads(ctypes.string_at(text))
        self.tanso.c.tn_string_free(text)
        for key in "shape", "strides", "data":
            described[key] = tuple(described[key])
        return described

    def on(self, kind):
        if self.tanso.c.tn_device_of(self.pointer).kind != kind:
            raise AttributeError("the array is on another device")

    @property
    def __array_interface__(self):
        self.on(CPU)
        return self.interface()

    @property
    def __cuda_array_interface__(self):
        self.on(CUDA)
        return self.interface()

    def __dlpack_device__(self):
        device = self.tanso.c.tn_device_of(self.pointer)
        return {CPU: 1, CUDA: 2}[device.kind], device.index

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        versioned = max_version is not None and max_version >= (1, 0)
        lend = self.tanso.c.tn_to_dlpack_versioned if versioned else self.tanso.c.tn_to_dlpack
        tensor = lend(self.pointer)
        self.tanso.check()
        return _python.PyCapsule_New(tensor, VERSIONED if versioned else OLD, None)
