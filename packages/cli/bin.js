#!/usr/bin/env node
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

// The published package has a build. A clone has the source, so that commands run before a build, and after a change.
const source = new URL('./src/main.ts', import.meta.url)
if (existsSync(source)) {
  process.env.TSX_TSCONFIG_PATH = fileURLToPath(new URL('../../tsconfig.json', import.meta.url))
  const { register } = await import('tsx/esm/api')
  register()
  await import(source.href)
} else {
  await import('./dist/main.js')
}
