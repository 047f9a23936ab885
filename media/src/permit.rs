//! The permit of an upstream connection.

/// The right to keep one upstream connection open.
///
/// The permit is held together with the socket and is dropped after it, so that it is returned only when the
/// provider can no longer see the connection.
pub trait Permit: Send + 'static {
    /// Called when the first payload packet has arrived: the provider carries the connection. Not called for files.
    fn delivers(&mut self);

    /// Called when the connection starts to close. The permit is dropped soon afterwards.
    fn closing(&mut self);
}
