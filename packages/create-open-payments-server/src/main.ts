import { randomBytes } from 'node:crypto'
import { standardOutput, start } from 'open-payments-programs'

await start(async () => {
  const [{ questionsOn }, { runProgram }] = await Promise.all([
    import('./questions.js'),
    import('./run.js'),
  ])
  const { stdin, stdout, versions, env, platform } = process
  return (args) =>
    runProgram(args, {
      ...standardOutput,
      nodeVersion: versions.node,
      environment: env,
      platform,
      ask: stdin.isTTY === true ? questionsOn(stdin, stdout) : undefined,
      isClone: import.meta.url.endsWith('.ts'),
      newSecret: () => randomBytes(32).toString('base64url'),
    })
})
