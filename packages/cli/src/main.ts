import { start } from 'open-payments-programs'

await start(async () => {
  const [{ runClient }, { terminal }] = await Promise.all([
    import('./command.js'),
    import('./terminal.js'),
  ])
  return (args) => runClient(args, terminal())
})
