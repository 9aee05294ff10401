//! The end of the frontend, as calls see it that have no end of their own.

use tokio::sync::watch;
use tonic::Status;

/// Whether the frontend closes: then calls that wait for their clients end.
#[derive(Clone, Debug)]
pub(super) struct Closing(watch::Receiver<bool>);

impl Closing {
    /// One that never comes, and the sender that changes that.
    pub(super) fn channel() -> (watch::Sender<bool>, Closing) {
        let (sender, receiver) = watch::channel(false);
        (sender, Closing(receiver))
    }

    /// Waits until the frontend closes. For ever, where nobody is there any more to say so.
    pub(super) async fn wait(mut self) {
        if self.0.wait_for(|closing| *closing).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// What a client reads whose call is ended.
    pub(super) fn status() -> Status {
        Status::unavailable("the server stops: what was asked is answered; connect anew for more")
    }
}
