// Entry point of the gateway.
#include "src/types.h"
#include "build/registers.h"
#include "build/version.h"
extern void uart_open(u32 baud);
extern void uart_word(u32 value);
extern int bus_poll(u8 address);
extern int sensor_scan(u16 *values);
extern void watchdog_start(void);
extern void watchdog_kick(void);

int main(void)
{
    u16 values[12];
    *(volatile u32 *)REG_CTRL = TRUE;
    uart_open(115200);
    uart_word(VERSION_WORD);
    watchdog_start();
    while (TRUE) {
        int bad = sensor_scan(values);
        if (bad != FALSE) {
            uart_word(*(volatile u32 *)REG_STATUS);
        }
        if (bus_poll(17) == FALSE) {
            *(volatile u16 *)REG_IRQ_FLAG = FALSE;
        }
        watchdog_kick();
    }
}
