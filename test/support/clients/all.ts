import type { Dialect } from './dialect.js'
import { dotnet } from './dotnet.js'
import { go } from './go.js'
import { php } from './php.js'
import { python } from './python.js'
import { rust } from './rust.js'
import { typescript } from './typescript.js'
import { unusual } from './unusual.js'

/** The clients that are published. */
export const published: readonly Dialect[] = [typescript, go, php, python, dotnet, rust]

export const dialects: readonly Dialect[] = [...published, unusual]
