//! Passwords are guessed through many connections, and users log in nevertheless.

mod slow {
    use std::time::Duration;

    use serde_json::json;
    use tokio::time::Instant;

    use crate::MEMORY;
    use crate::support::api::Api;
    use crate::support::gateway::Setup;
    use crate::support::hostile::Hostile;

    const GUESSERS: u32 = 2_000;
    const SLOW_BODIES: u32 = 1_000;
    /// Bytes that these connections and the hashes of guesses may take in this process, both sides of the connections
    /// together. Two passwords are hashed at a time, with 19 MiB each.
    const BYTES_MAX: usize = 200 << 20;
    const TIME: Duration = Duration::from_secs(15);

    /// The numbers of the operating page. Holds T-guess.1 and T-guess.2.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn two_thousand_guessing_connections_and_slow_bodies_keep_no_known_device_out() {
        // So that each login of the user is verified.
        let setup = Setup::new().config(|it| it.auth.remember_login = Duration::ZERO);
        let gateway = setup.start().await;
        let admin = Api::first_admin(&gateway).await;
        let anna = json!({ "username": "anna", "password": "right and long enough", "user_level": 0 });
        assert_eq!(admin.post("/api/accounts/users/", anna).await.status, 201);
        let login = async || admin.token("anna", "right and long enough").await.status;
        assert_eq!(login().await, 200);
        let before = MEMORY.allocated();

        let guessers = Hostile::guessers(gateway.address, "anna", GUESSERS);
        let slow = Hostile::slow_bodies(gateway.address, SLOW_BODIES);
        let begun = Instant::now();
        let (mut n_logins, mut longest, mut bytes) = (0, Duration::ZERO, 0);
        while begun.elapsed() < TIME || n_logins < 5 {
            let asked = Instant::now();
            assert_eq!(login().await, 200, "after {:?}: {:?}", begun.elapsed(), guessers.answers());
            longest = longest.max(asked.elapsed());
            n_logins += 1;
            bytes = bytes.max(MEMORY.allocated().saturating_sub(before));
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        let answers = guessers.answers();
        eprintln!("{n_logins} logins, the longest {longest:?}; guesses {answers:?}; {} MiB", bytes >> 20);
        assert!(answers.keys().all(|it| [401, 503].contains(it)), "{answers:?}");
        assert!(answers.values().sum::<u64>() > 0);
        assert!(bytes < BYTES_MAX, "{bytes}");
        drop((guessers, slow));
        assert_eq!(login().await, 200);
    }
}
