// #region jest
/** The packages with ES modules, which Jest must compile for `require`. */
const modules = 'open-payments-server(?:-testing)?/'
const compilerOptions = {
  allowJs: true,
  isolatedModules: true,
  module: 'CommonJS',
  target: 'ES2022',
}

module.exports = {
  transform: {
    [`/node_modules/${modules}.+\\.js$`]: ['ts-jest', { tsconfig: compilerOptions }],
    '\\.tsx?$': 'ts-jest',
  },
  // pnpm keeps packages in `node_modules/.pnpm`.
  transformIgnorePatterns: [`/node_modules/(?!\\.pnpm/|${modules})`],
}
// #endregion jest
