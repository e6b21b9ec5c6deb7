package odradek;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * One run of a main class inside {@link MainServer}, with streams and an exit like a separate process.
 *
 * <p>A run belongs to the thread that started it and to every thread started from there. It ends when a thread
 * calls {@code Exit.exit}, or when {@code main} has returned and no thread but daemons is left; then its shutdown
 * hooks run. As in a separate process, a thread that calls {@code Exit.exit} never continues: otherwise it
 * would execute code that no user ever sees running.
 */
final class Run {
    private static final InheritableThreadLocal<Run> CURRENT = new InheritableThreadLocal<>();

    private final ThreadGroup threads = new ThreadGroup("run");
    private final InputStream in;
    private final Captured out = new Captured();
    private final Captured err = new Captured();
    private final List<Thread> hooks = new ArrayList<>();
    private final AtomicBoolean isEnding = new AtomicBoolean();
    private final CountDownLatch ended = new CountDownLatch(1);
    private int status;

    Run(byte[] stdin) {
        in = new ByteArrayInputStream(stdin);
    }

    /** The run of this thread; null in the threads of the server. */
    static Run current() {
        return CURRENT.get();
    }

    InputStream in() {
        return in;
    }

    Captured out() {
        return out;
    }

    Captured err() {
        return err;
    }

    /** Runs {@code main} to the end of the run and returns the exit status. */
    int toTheEnd(String mainClass, String[] args) {
        new Thread(threads, () -> {
            CURRENT.set(this);
            end(statusOf(mainClass, args));
        }, "main").start();
        try {
            ended.await();
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
        out.close();
        err.close();
        return status;
    }

    private int statusOf(String mainClass, String[] args) {
        try {
            Class.forName(mainClass).getMethod("main", String[].class).invoke(null, (Object) args);
            awaitOtherThreads();
            return 0;
        } catch (InvocationTargetException error) {
            System.err.print("Exception in thread \"main\" ");
            error.getCause().printStackTrace();
        } catch (ReflectiveOperationException | InterruptedException error) {
            error.printStackTrace();
        }
        return 1;
    }

    /** Joins the threads of this run that would keep a process alive. */
    private void awaitOtherThreads() throws InterruptedException {
        Thread[] found = new Thread[threads.activeCount() + 10];
        int count = threads.enumerate(found);
        for (int index = 0; index < count; index++) {
            if (found[index] != Thread.currentThread() && !found[index].isDaemon()) {
                found[index].join();
                awaitOtherThreads();
                return;
            }
        }
    }

    /** Ends the run. Never returns. */
    void exit(int exitStatus) {
        end(exitStatus);
        while (true) {
            try {
                Thread.sleep(Long.MAX_VALUE);
            } catch (InterruptedException error) {
                // for this thread the process has ended
            }
        }
    }

    void atExit(String name, Runnable hook) {
        synchronized (hooks) {
            hooks.add(new Thread(threads, hook, name));
        }
    }

    /** Runs the shutdown hooks in parallel, as a JVM does, then lets {@link #toTheEnd} return. */
    private void end(int exitStatus) {
        if (isEnding.getAndSet(true)) {
            return;
        }
        List<Thread> all;
        synchronized (hooks) {
            all = List.copyOf(hooks);
        }
        all.forEach(Thread::start);
        try {
            for (Thread hook : all) {
                hook.join();
            }
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
        status = exitStatus;
        ended.countDown();
    }

    /** The bytes written to a stream until the run has ended. */
    static final class Captured extends ByteArrayOutputStream {
        private boolean isClosed;

        @Override
        public synchronized void write(int value) {
            if (!isClosed) {
                super.write(value);
            }
        }

        @Override
        public synchronized void write(byte[] from, int offset, int length) {
            if (!isClosed) {
                super.write(from, offset, length);
            }
        }

        @Override
        public synchronized void close() {
            isClosed = true;
        }
    }
}
