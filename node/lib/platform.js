'use strict';

/** Whether undertick.h has a recorder for this platform. */
function isSupported() {
  return process.platform === 'linux' && (process.arch === 'x64' || process.arch === 'arm64');
}

module.exports = { isSupported };
