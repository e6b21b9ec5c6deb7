package odradek;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;

/**
 * The hooks of Kafka's {@code Exit}, by which its tools end and register what runs at the end.
 *
 * <p>Kafka 4.4 moved that class to another package, so that it is found by name here: one source serves both.
 */
final class KafkaExit {
    private static final String[] PACKAGES = {"org.apache.kafka.common.utils.internals", "org.apache.kafka.common.utils"};

    private KafkaExit() {
    }

    /** Lets the current run end, and no longer the JVM. */
    static void endRunsOnly() {
        set("setExitProcedure", arguments -> Run.current().exit((int) arguments[0]));
        set("setHaltProcedure", arguments -> Run.current().exit((int) arguments[0]));
        set("setShutdownHookAdder", arguments -> Run.current().atExit((String) arguments[0], (Runnable) arguments[1]));
    }

    private static void set(String setter, Hook hook) {
        try {
            for (Method method : exit().getMethods()) {
                if (method.getName().equals(setter)) {
                    Class<?> type = method.getParameterTypes()[0];
                    InvocationHandler handler = (self, called, arguments) -> {
                        hook.call(arguments);
                        return null;
                    };
                    method.invoke(null, Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, handler));
                    return;
                }
            }
            throw new NoSuchMethodException(setter);
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException("no Exit of Kafka that can be hooked", error);
        }
    }

    private static Class<?> exit() throws ClassNotFoundException {
        for (String name : PACKAGES) {
            try {
                return Class.forName(name + ".Exit");
            } catch (ClassNotFoundException error) {
                // the other version of Kafka
            }
        }
        throw new ClassNotFoundException("Exit");
    }

    /** The body of a hook, with the arguments that Kafka passes. */
    private interface Hook {
        void call(Object[] arguments);
    }
}
