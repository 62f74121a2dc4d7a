// #region jest
module.exports = { preset: 'ts-jest' }
// #endregion jest
