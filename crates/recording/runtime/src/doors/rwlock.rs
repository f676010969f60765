//! Locks with a shared mode.

use core::ffi::c_int;

use super::{acquire, acquired, doors, enter_or, release};
use crate::wire::{Kind, flag};

doors! {
    fn pthread_rwlock_init(lock: usize, attributes: usize) -> c_int {
        let entry = enter_or!(real::pthread_rwlock_init(lock, attributes));
        entry.log(Kind::LockInit, lock as u64);
        real::pthread_rwlock_init(lock, attributes)
    }

    fn pthread_rwlock_destroy(lock: usize) -> c_int {
        let entry = enter_or!(real::pthread_rwlock_destroy(lock));
        entry.log(Kind::LockDestroy, lock as u64);
        real::pthread_rwlock_destroy(lock)
    }

    fn pthread_rwlock_rdlock(lock: usize) -> c_int {
        let entry = enter_or!(real::pthread_rwlock_rdlock(lock));
        let attempt = || real::pthread_rwlock_tryrdlock(lock);
        acquire(&entry, lock, flag::SHARED, attempt, || real::pthread_rwlock_rdlock(lock))
    }

    fn pthread_rwlock_tryrdlock(lock: usize) -> c_int {
        let entry = enter_or!(real::pthread_rwlock_tryrdlock(lock));
        let flags = flag::SHARED | flag::TRY;
        acquired(&entry, lock, flags, real::pthread_rwlock_tryrdlock(lock))
    }

    fn pthread_rwlock_timedrdlock(lock: usize, until: usize) -> c_int {
        let entry = enter_or!(real::pthread_rwlock_timedrdlock(lock, until));
        let attempt = || real::pthread_rwlock_tryrdlock(lock);
        let wait = || real::pthread_rwlock_timedrdlock(lock, until);
        acquire(&entry, lock, flag::SHARED | flag::TRY, attempt, wait)
    }

    fn pthread_rwlock_clockrdlock(lock: usize, clock: c_int, until: usize) -> c_int {
        let entry = enter_or!(real::pthread_rwlock_clockrdlock(lock, clock, until));
        let attempt = || real::pthread_rwlock_tryrdlock(lock);
        let wait = || real::pthread_rwlock_clockrdlock(lock, clock, until);
        acquire(&entry, lock, flag::SHARED | flag::TRY, attempt, wait)
    }

    fn pthread_rwlock_wrlock(lock: usize) -> c_int {
        let entry = enter_or!(real::pthread_rwlock_wrlock(lock));
        let attempt = || real::pthread_rwlock_trywrlock(lock);
        acquire(&entry, lock, 0, attempt, || real::pthread_rwlock_wrlock(lock))
    }

    fn pthread_rwlock_trywrlock(lock: usize) -> c_int {
        let entry = enter_or!(real::pthread_rwlock_trywrlock(lock));
        acquired(&entry, lock, flag::TRY, real::pthread_rwlock_trywrlock(lock))
    }

    fn pthread_rwlock_timedwrlock(lock: usize, until: usize) -> c_int {
        let entry = enter_or!(real::pthread_rwlock_timedwrlock(lock, until));
        let attempt = || real::pthread_rwlock_trywrlock(lock);
        let wait = || real::pthread_rwlock_timedwrlock(lock, until);
        acquire(&entry, lock, flag::TRY, attempt, wait)
    }

    fn pthread_rwlock_clockwrlock(lock: usize, clock: c_int, until: usize) -> c_int {
        let entry = enter_or!(real::pthread_rwlock_clockwrlock(lock, clock, until));
        let attempt = || real::pthread_rwlock_trywrlock(lock);
        let wait = || real::pthread_rwlock_clockwrlock(lock, clock, until);
        acquire(&entry, lock, flag::TRY, attempt, wait)
    }

    fn pthread_rwlock_unlock(lock: usize) -> c_int {
        let entry = enter_or!(real::pthread_rwlock_unlock(lock));
        release(&entry, lock);
        real::pthread_rwlock_unlock(lock)
    }
}
