// Asks the console; null if it does not answer, because it has ended or the page is being left.

export async function ask(address, options) {
  try {
    return await fetch(address, options);
  } catch {
    return null;
  }
}
