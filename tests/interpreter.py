"""Triton's interpreter, which runs the kernels of the GPU where there is none, at twice its speed."""


def quicken():
    """At every call of a function it puts its own functions into Triton's language, which takes most of its
    time. Here it does so once in a kernel for each module whose functions are called. It also looks a type's
    NumPy twin up in a table that it makes anew each time; here each type is looked up once."""
    from triton.runtime import interpreter

    patch, run, find = interpreter._patch_lang, interpreter.GridExecutor.__call__, interpreter._get_np_dtype
    modules = set()  # that have been seen to in this kernel
    twins = {}  # by the names of Triton's types

    def patch_once(function):
        if function.__module__ in modules:
            return None
        modules.add(function.__module__)
        return patch(function)

    def run_once_patched(self, *arguments, **more):
        modules.clear()
        try:
            return run(self, *arguments, **more)
        finally:
            modules.clear()

    def twin(dtype):
        if dtype.name not in twins:
            twins[dtype.name] = find(dtype)
        return twins[dtype.name]

    interpreter._patch_lang, interpreter.GridExecutor.__call__ = patch_once, run_once_patched
    interpreter._get_np_dtype = twin
