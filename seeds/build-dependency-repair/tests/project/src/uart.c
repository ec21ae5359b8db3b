// Service port, polled.
#include "src/types.h"
#include "build/registers.h"
#include "build/limits.h"

static u8 queue[LIMIT_UART_QUEUE];
static u8 fill;

void uart_open(u32 baud)
{
    *(volatile u16 *)REG_UART_BAUD = (u16)(baud / 16);
    fill = 0;
}

void uart_word(u32 value)
{
    for (u8 i = 0; i < 4 && fill < LIMIT_UART_QUEUE; i++) {
        queue[fill++] = (u8)(value >> (24 - 8 * i));
    }
    while (fill > 0 && (*(volatile u8 *)REG_UART_STATE & 1)) {
        *(volatile u8 *)REG_UART_DATA = queue[--fill];
    }
}
