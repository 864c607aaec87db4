package people

// NobodysHash is what is compared for an unknown user.
const NobodysHash = nobodysHash
