interface MaybeNode {
  readonly process?: { readonly getBuiltinModule?: (id: string) => unknown }
}

/**
 * A built-in module of Node, where there is one. Reached this way, not by an import, so that the library
 * bundles for runtimes that have none.
 */
export function nodeModule<Module>(id: `node:${string}`): Module | undefined {
  const builtin = (globalThis as MaybeNode).process?.getBuiltinModule?.(id)
  return builtin as Module | undefined
}
