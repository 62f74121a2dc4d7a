import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

interface LockedPackage {
  readonly version?: string
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly hasInstallScript?: boolean
  readonly dev?: boolean
  readonly resolved?: string
  /** Whether it is a package of this repository. */
  readonly link?: boolean
}

const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as {
  readonly packages: Readonly<Record<string, LockedPackage>>
}

const library = JSON.parse(readFileSync('package.json', 'utf8')) as {
  readonly dependencies: Readonly<Record<string, string>>
}

describe('the library', () => {
  it('lets a host install patches of what it depends on, and is tested with the oldest version', () => {
    const oldest = Object.keys(library.dependencies).map(
      (name) => [name, `^${packages[`node_modules/${name}`]?.version}`] as const,
    )
    expect(library.dependencies).toEqual(Object.fromEntries(oldest))
  })
})

describe('the lock file', () => {
  it('has an entry for each platform of a package, as npm ci requires', () => {
    const missing = Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
      Object.keys(optionalDependencies).filter(
        (name) =>
          packages[`${path}/node_modules/${name}`] === undefined &&
          packages[`node_modules/${name}`] === undefined,
      ),
    )
    expect(missing).toEqual([])
  })

  it('contains no registry, so that the installing machine chooses it', () => {
    const resolved = Object.values(packages).filter(
      ({ resolved, link }) => resolved !== undefined && !link,
    )
    expect(resolved).toEqual([])
  })

  it('lists no install script for the dependencies of the library', () => {
    const scripted = Object.entries(packages)
      .filter(([path, { dev, hasInstallScript }]) => path !== '' && !dev && hasInstallScript)
      .map(([path]) => path)
    expect(scripted).toEqual([])
  })
})
