import { expect, test } from 'vitest'
import { toExpress } from '../../adapters/express.js'
import { toFastify } from '../../adapters/fastify.js'
import { toHono } from '../../adapters/hono.js'
import { toFetch } from '../../src/index.js'
import { invalidInput } from '../support/invalid-input.js'
import { createWorld } from '../support/world.js'

const adapters = { toExpress, toFastify, toHono, toFetch }

test.each(Object.entries(adapters))(
  '%s refuses a server at once, and says what to pass',
  (name, adapt) => {
    const { auth } = createWorld()
    for (const value of [auth, undefined, null, 'handle', auth.handlers]) {
      expect(() => adapt(value as never)).toThrow(
        invalidInput('handle', {
          message: `handle must be a function: pass the handle of a server, such as ${name}(auth.handle)`,
        }),
      )
      expect(() => adapt(value as never)).toThrow(TypeError)
    }
    expect(() => adapt(auth.handle)).not.toThrow()
  },
)
