import { vi } from 'vitest'

/** Imports a module afresh, as a runtime would that has none of Node's built-in modules. */
export function importWithoutNode<Module>(load: () => Promise<Module>): Promise<Module> {
  return importWithBuiltins(() => undefined, load)
}

/**
 * Imports a module afresh, in a runtime whose built-in modules are what `find` answers. Fails if nobody asked
 * for one, since then the module that came back need not be a fresh one.
 */
export async function importWithBuiltins<Module>(
  find: (id: string) => unknown,
  load: () => Promise<Module>,
): Promise<Module> {
  vi.resetModules()
  const builtin = vi
    .spyOn(process, 'getBuiltinModule')
    .mockImplementation((id: string) => find(id) as never)
  try {
    const module = await load()
    if (builtin.mock.calls.length === 0) throw new Error('no built-in module was asked for')
    return module
  } finally {
    builtin.mockRestore()
    vi.resetModules()
  }
}
